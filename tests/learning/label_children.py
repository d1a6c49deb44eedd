"""What the processes of the tests of labelling do. Each gets its end of a pipe first."""

import os
import signal

import numpy as np
from tests.learning.sure_votes import EPSILON, TEACHERS, session_for, unanimous

from targetcharge.learning import label
from targetcharge.sessions.batch import BatchCall

TRUTH = np.arange(400) % 3
PRIOR = np.where(np.arange(400) % 4 == 1, 2 - TRUTH, TRUTH)
"""What costs: every fourth request, but for those where both are 1."""


def labelled(session, name="labels", **more):
    return label(
        unanimous(TRUTH), session, teachers=TEACHERS, epsilon=EPSILON, mode="prior", prior=PRIOR, name=name, **more
    )


def races(pipe, path, hits, name):
    """Label at once with others; tell what came of it."""
    session = session_for("prior", hits, ledger=path)
    pipe.send("opened")
    pipe.recv()
    labels = labelled(session, name)
    pipe.send((labels.codes.tolist(), labels.hit.tolist(), labels.asked))
    session.close()
    pipe.send("closed")


def is_killed(pipe, path, hits, entries):
    """Die right after so many entries, in the middle of labelling; tell what was published before."""
    session, published = session_for("prior", hits, ledger=path), []
    publish = BatchCall.publish

    def killing(self, *arguments):
        (entry,) = publish(self, *arguments)
        published.append((entry.first.key, entry.indices.tolist(), entry.hit_places))
        pipe.send(published[-1])
        if len(published) == entries:
            os.kill(os.getpid(), signal.SIGKILL)
        return [entry]

    BatchCall.publish = killing
    labelled(session)
