"""What scripts of Auptimizer import, for trials that Berth runs (docs/how-to/auptimizer.md).

    from aup import BasicConfig, print_result      from aup import aup_args, aup_save_model

    config = BasicConfig().load(sys.argv[1])        @aup_args
    print_result(train(config.lr, config["width"])) def train(lr, width=32):
                                                        ...
                                                        aup_save_model(model.save, "model.h5")
                                                        return accuracy
                                                    train(sys.argv[1])

Berth gives it to the trials of such a document by PYTHONPATH, on other machines too. Where the
package of that name is installed, that is what a script gets.
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

_saver = None  # of the model: a call without arguments


def print_result(result):
    """Reports the score; of a list, the score and further values. It may be called often: each
    report is kept, and the last one counts."""
    values = result if isinstance(result, (list, tuple)) else [result]
    print("\n#Auptimizer:" + ",".join(str(value).strip() for value in values), file=sys.stderr, flush=True)


class BasicConfig(dict):
    """The parameters of a trial: a dict whose keys are attributes too. Files end in .json or .pkl.

    The number of the trial is config.job_id and config["job_id"], but no parameter: **config is without it.
    """

    def __missing__(self, name):
        if name == "job_id" and "job_id" in vars(self):
            return vars(self)["job_id"]
        raise KeyError(name)

    def __getattr__(self, name):
        # What is no parameter is no attribute: copy and pickle ask for some that are not there.
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
        """Adds what the file says, and returns itself."""
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
        """Sets those of absl's (or TensorFlow's) flags that are parameters."""
        for name in flags:
            if name in self:
                setattr(flags, name, self[name])


def _is_pickle(filename):
    ending = os.path.splitext(filename)[1].lower()
    if ending not in (".json", ".pkl"):
        raise ValueError(f"{filename}: expected a name that ends in .json or .pkl")
    return ending == ".pkl"


def aup_save_model(function, *args, **kwargs):
    """Says how the model is saved: function(*args, **kwargs). It is called for the best trial,
    when that runs again to be saved (save_model), in aup_models/<folder_name>."""
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
    """Makes of function(lr, width=32) one that takes the name of a file of parameters, and reports
    what it returns. Keyword arguments go before what the file says. Functions of the same module
    with "init" in their names are called first, with all parameters, in the order of the names."""

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
    """Of main(): one for app.run(), which sets the flags from the file that its argument names, and
    reports what main() returns."""

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
    """The package of that name, where there is one behind this file."""
    here = os.path.dirname(os.path.abspath(__file__))
    return importlib.machinery.PathFinder.find_spec(
        "aup", [place for place in sys.path if os.path.abspath(place) != here])


if __name__ == "aup" and (_spec := _installed()) and _spec.loader:
    sys.modules["aup"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["aup"])
