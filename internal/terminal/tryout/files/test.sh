cost=$(sh price.sh 3 20)
if [ "$cost" != 60 ]; then
  echo "3 pieces at 20 cost $cost, expected 60"
  exit 1
fi
echo ok
