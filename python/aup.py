"""The module that scripts of Auptimizer import, for trials that Berth runs (docs/how-to/auptimizer.md).

    from aup import BasicConfig, print_result      from aup import aup_args, aup_save_model

    config = BasicConfig().load(sys.argv[1])        @aup_args
    print_result(train(config.lr, config["width"])) def train(lr, width=32):
                                                        ...
                                                        aup_save_model(model.save, "model.h5")
                                                        return accuracy
                                                    train(sys.argv[1])

Berth adds it to PYTHONPATH for the trials of such a document, on other machines too. If the
package aup is installed, scripts get the package instead.
"""

import functools
import importlib.machinery
import importlib.util
import inspect
import json
import os
import pickle
import shutil
import sys

__all__ = ["BasicConfig", "print_result", "aup_args", "aup_flags", "aup_save_model"]

_saver = None  # the function, without arguments, that saves the model


def print_result(result):
    """Reports the score. A list has the score and additional values. It may be called often: each
    report is kept, and the last one is the result."""
    values = result if isinstance(result, (list, tuple)) else [result]
    print("\n#Auptimizer:" + ",".join(str(value).strip() for value in values), file=sys.stderr, flush=True)


class BasicConfig(dict):
    """The parameters of a trial: a dict whose keys are attributes too. Files end in .json or .pkl.

    The number of the trial is config.job_id and config["job_id"]. It is not a parameter, so **config does not contain it.
    """

    def __missing__(self, name):
        if name == "job_id" and "job_id" in vars(self):
            return vars(self)["job_id"]
        raise KeyError(name)

    def __getattr__(self, name):
        # copy and pickle ask for attributes that do not exist, so only parameters are attributes.
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no parameter is called {name}") from None

    def __setattr__(self, name, value):
        self[name] = value

    def __delattr__(self, name):
        try:
            del self[name]
        except KeyError:
            raise AttributeError(f"no parameter is called {name}") from None

    def load(self, filename):
        """Adds the parameters of the file, and returns self."""
        if _is_pickle(filename):
            with open(filename, "rb") as file:
                read = pickle.load(file)
        else:
            with open(filename) as file:
                read = json.load(file)
        if not isinstance(read, dict):
            raise TypeError(f"{filename}: expected parameters by name, got {type(read).__name__}")
        if "job_id" in read:
            vars(self)["job_id"] = read["job_id"]
        self.update({name: value for name, value in read.items() if name != "job_id"})
        return self

    def save(self, filename):
        if _is_pickle(filename):
            with open(filename, "wb") as file:
                pickle.dump(dict(self), file)
        else:
            with open(filename, "w") as file:
                json.dump(self, file)

    def to_flags(self, flags):
        """Sets the flags of absl or TensorFlow that are parameters."""
        for name in flags:
            if name in self:
                setattr(flags, name, self[name])


def _is_pickle(filename):
    ending = os.path.splitext(filename)[1].lower()
    if ending not in (".json", ".pkl"):
        raise ValueError(f"{filename}: expected a name that ends in .json or .pkl")
    return ending == ".pkl"


def aup_save_model(function, *args, **kwargs):
    """Registers function(*args, **kwargs) to save the model. It is called in aup_models/<folder_name> when
    the best trial runs again to be saved (save_model)."""
    global _saver
    _saver = functools.partial(function, *args, **kwargs)


def _save(config):
    if config.get("save_model") is not True or _saver is None:
        return
    folder = os.path.join("aup_models", config.get("folder_name") or "model")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    before = os.getcwd()
    os.chdir(folder)
    try:
        _saver()
    finally:
        os.chdir(before)


def aup_args(function):
    """Turns function(lr, width=32) into a function that takes the name of a parameter file, and reports
    the result. Keyword arguments override the file. Functions of the same module with "init" in their
    names are called first, with all parameters, in the order of the names."""

    @functools.wraps(function)
    def with_file(filename, **overrides):
        config = BasicConfig().load(filename)
        config.update(overrides)
        for name, init in sorted(vars(sys.modules[function.__module__]).items()):
            if "init" in name and inspect.isfunction(init):
                init(**config)
        wanted = inspect.signature(function).parameters
        if any(one.kind is one.VAR_KEYWORD for one in wanted.values()):
            given = config
        else:
            given = {name: config[name] for name in wanted if name in config}
        missing = [name for name, one in wanted.items() if name not in given and
                   one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
        if missing:
            raise ValueError(f"{function.__name__}() requires {', '.join(missing)}, which {filename} does not have")
        print_result(function(**given))
        _save(config)

    return with_file


def aup_flags(flags):
    """Decorates main() for app.run(): it sets the flags from the file that the argument names, and
    reports the result of main()."""

    def decorate(function):
        @functools.wraps(function)
        def with_flags(argv):
            config = BasicConfig().load(argv[1])
            config.to_flags(flags)
            print_result(function(argv) if inspect.signature(function).parameters else function())
            _save(config)

        return with_flags

    return decorate


def _installed():
    """Returns the installed package aup, if sys.path has one in another folder."""
    here = os.path.dirname(os.path.abspath(__file__))
    return importlib.machinery.PathFinder.find_spec(
        "aup", [place for place in sys.path if os.path.abspath(place) != here])


if __name__ == "aup" and (_spec := _installed()) and _spec.loader:
    sys.modules["aup"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["aup"])
