# price.sh PIECES PRICE: prints what the pieces cost.
echo $(($1 + $2))
