"""How the jobs of a sweep are run: workers on this machine, SLURM arrays, the sweeper, its summary."""
