"""Calls one function of a Python tool: python run.py TOOL FUNCTION, with the
arguments as JSON in the file that RADDLE_CALL names."""

import importlib.util
import inspect
import json
import os
import signal
import sys
import traceback


def load(path):
    name = os.path.splitext(os.path.basename(path))[0]
    if name in sys.modules:
        name = "raddle_tool"
    sys.path[0] = os.path.dirname(path)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.dont_write_bytecode = True  # the tool's directory belongs to its user
    spec.loader.exec_module(module)
    return module


plain = (int, float, str, bool, list, dict, object, None, type(None))


def hints_of(function):
    """Returns the types of the parameters that need more than JSON gives."""
    notes = getattr(inspect.unwrap(function), "__annotations__", {})
    if all(h in plain for name, h in notes.items() if name != "return"):
        return {}
    import typing
    try:
        return typing.get_type_hints(inspect.unwrap(function))
    except Exception:  # a name that only a type checker knows: the function gets what JSON gives
        return {}


def convert(value, hint):
    """Makes a value of JSON one of a type. What is no such value stays as it is."""
    import collections.abc
    import types
    import typing
    kind, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in plain:
        return value
    if kind is typing.Literal:
        return next((v for v in inner if type(v) not in plain and v.value == value), value)
    if kind is typing.Union or kind is getattr(types, "UnionType", typing.Union):
        return convert_union(value, inner)
    of = kind or hint
    if not isinstance(of, type) or value is None:
        return value
    if isinstance(value, list):
        return convert_list(value, of, inner)
    if isinstance(value, dict):
        if len(inner) == 2 and issubclass(of, collections.abc.Mapping):
            return {(int(k) if inner[0] is int else k): convert(v, inner[1]) for k, v in value.items()}
        return convert_object(value, of)
    return convert_scalar(value, of)


def convert_union(value, members):
    members = [m for m in members if m is not type(None)]
    if value is None or any(m in plain and m is not object and isinstance(value, m) for m in members):
        return value
    for m in members:
        try:
            made = convert(value, m)
        except Exception:
            continue
        if made is not value:
            return made
    return value


def convert_list(value, of, inner):
    if issubclass(of, tuple) and hasattr(of, "_fields"):
        return of(*value)
    if issubclass(of, tuple) and inner and inner[-1] is not Ellipsis:
        return tuple(convert(v, h) for v, h in zip(value, inner))
    made = [convert(v, inner[0]) for v in value] if inner else value
    import collections.abc
    if issubclass(of, tuple):
        return tuple(made)
    if issubclass(of, frozenset):
        return frozenset(made)
    if issubclass(of, collections.abc.Set):
        return set(made)
    if issubclass(of, collections.deque):
        return collections.deque(made)
    return made


def convert_object(value, of):
    import typing
    for name in ("model_validate", "parse_obj"):  # of pydantic
        if hasattr(of, name):
            return getattr(of, name)(value)
    fields = hasattr(of, "__dataclass_fields__") or issubclass(of, tuple) and hasattr(of, "_fields")
    if fields or hasattr(of, "__total__"):
        hints = typing.get_type_hints(of)
        value = {k: convert(v, hints.get(k, object)) for k, v in value.items()}
        return of(**value) if fields else value
    return value


def convert_scalar(value, of):
    import datetime
    import decimal
    import enum
    import pathlib
    import uuid
    if issubclass(of, enum.Enum):
        try:
            return of(value)
        except ValueError:
            return of[value]
    if issubclass(of, decimal.Decimal) and not isinstance(value, bool):
        return of(str(value))
    if not isinstance(value, str):
        return value
    if issubclass(of, (datetime.date, datetime.time)):
        return of.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
    if issubclass(of, (pathlib.PurePath, uuid.UUID)):
        return of(value)
    return value


def bind(function, data):
    """Splits the arguments for what cannot be given by name."""
    hints = hints_of(function)
    kinds = inspect.signature(function).parameters.values()
    spread = any(p.kind is p.VAR_POSITIONAL and p.name in data for p in kinds)
    positional, named = [], dict(data)

    def take(p, value):
        if p.name not in hints:
            return value
        try:
            return convert(value, hints[p.name])
        except Exception as e:
            sys.exit(f"error: the argument `{p.name}` is wrong: {e}")

    for p in kinds:
        if p.kind is p.VAR_POSITIONAL and p.name in named:
            value = named.pop(p.name)
            positional.extend(take(p, v) for v in (value if isinstance(value, list) else [value]))
        elif p.kind is p.VAR_KEYWORD and p.name in named:
            named.update({k: take(p, v) for k, v in (named.pop(p.name) or {}).items()})
        elif p.kind is p.POSITIONAL_ONLY or (spread and p.kind is p.POSITIONAL_OR_KEYWORD):
            if p.name in named:
                positional.append(take(p, named.pop(p.name)))
            elif p.default is not p.empty:
                positional.append(p.default)
        elif p.name in named:
            named[p.name] = take(p, named[p.name])
    return positional, named


def call(function, data):
    """Calls a function and waits for its result if it is async."""
    positional, named = bind(function, data)
    value = function(*positional, **named)
    if inspect.isawaitable(value):
        import asyncio

        async def wait():
            return await value

        return asyncio.run(wait())
    return value


def give(value):
    if isinstance(value, (str, int, float)):
        text = str(value)
    elif isinstance(value, (dict, list)):
        text = json.dumps(value, indent=2, ensure_ascii=False)
    else:
        return
    with open(os.environ["LLM_OUTPUT"], "w", encoding="utf-8", errors="replace") as out:
        out.write(text)


def main():
    path, name = sys.argv[1:3]
    with open(os.environ.pop("RADDLE_CALL"), encoding="utf-8") as f:
        data = json.load(f)
    sys.argv = [path, name]
    try:
        give(call(getattr(load(path), name), data))
    except KeyboardInterrupt:  # Ctrl-C of a person: the end that a traceback would explain
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except Exception as e:
        frame = e.__traceback__
        while frame and frame.tb_frame.f_code.co_filename == __file__:
            frame = frame.tb_next
        traceback.print_exception(type(e), e, frame)
        sys.exit(1)


main()
