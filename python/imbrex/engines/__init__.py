"""Where the jobs of a sweep are made: threads of this process, any executor of `concurrent.futures`, Ray, Slurm.

An engine is anything with the attributes and methods of `Engine`. It only carries chunks of jobs to workers: which jobs are made,
and by whom, is settled in the folder of the results, so that an engine that loses a chunk or carries it twice does no harm.
"""

from ._engine import Chunk, Engine, Tally
from ._futures import Executor
from ._ray import Ray
from ._submitit import Submitit
from ._threads import Threads

__all__ = ["Chunk", "Engine", "Executor", "Ray", "Submitit", "Tally", "Threads"]
