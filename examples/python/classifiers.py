#!/usr/bin/python3
"""Which of two classifiers, and how it is set: a space with a branch (python3-sklearn).

    PYTHONPATH=python examples/python/classifiers.py"""

import berth
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

X, Y = load_iris(return_X_y=True)


def objective(trial):
    if trial.suggest_categorical("classifier", ["svc", "forest"]) == "svc":
        model = SVC(C=trial.suggest_float("c", 1e-10, 1e10, log=True), gamma="auto")
    else:
        model = RandomForestClassifier(max_depth=trial.suggest_int("depth", 2, 32, log=True), n_estimators=10)
    return cross_val_score(model, X, Y, cv=3).mean()


if __name__ == "__main__":
    study = berth.Study(name="classifiers", goal="accuracy")
    study.optimize(objective, n_trials=100, n_jobs=2)
    print(f"{study.best_trial.id}: accuracy {study.best_value:.3f} with {dict(study.best_params)}")
