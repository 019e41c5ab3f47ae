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


def bind(function, data):
    """Splits the arguments for what cannot be given by name."""
    kinds = inspect.signature(function).parameters.values()
    spread = any(p.kind is p.VAR_POSITIONAL and p.name in data for p in kinds)
    positional, named = [], dict(data)
    for p in kinds:
        if p.kind is p.VAR_POSITIONAL and p.name in named:
            value = named.pop(p.name)
            positional.extend(value if isinstance(value, list) else [value])
        elif p.kind is p.VAR_KEYWORD and p.name in named:
            value = named.pop(p.name)
            if isinstance(value, str) and value.strip():
                value = json.loads(value)
            named.update(value or {})
        elif p.kind is p.POSITIONAL_ONLY or (spread and p.kind is p.POSITIONAL_OR_KEYWORD):
            if p.name in named:
                positional.append(named.pop(p.name))
            elif p.default is not p.empty:
                positional.append(p.default)
    return positional, named


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
        function = getattr(load(path), name)
        positional, named = bind(function, data)
        give(function(*positional, **named))
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
