"""Noise as code found in the wild draws it: from the one generator that all code of a process shares."""

import numpy as np

seed_shared = np.random.seed
shared_uniform = np.random.random
shared_laplace = np.random.laplace
