# Runs the code on standard input, and prints the value of its last line.
import sys

# Modules of the workspace can be imported, but take the place of none of Python's own.
sys.path = [p for p in sys.path if p] + [""]
import ast

tree = ast.parse(sys.stdin.read(), "<code>")
last = None
if tree.body and isinstance(tree.body[-1], ast.Expr):
    last = tree.body.pop().value
elif tree.body and isinstance(tree.body[-1], ast.Assign) and isinstance(tree.body[-1].targets[0], ast.Name):
    last = ast.copy_location(ast.Name(tree.body[-1].targets[0].id, ast.Load()), tree.body[-1])
names = {"__name__": "__main__"}
exec(compile(tree, "<code>", "exec"), names)
if last is not None:
    value = eval(compile(ast.Expression(last), "<code>", "eval"), names)
    if value is not None:
        print(value)
