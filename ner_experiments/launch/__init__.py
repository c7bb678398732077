"""Running the jobs of a sweep: workers on this machine, SLURM arrays, the sweeper, its summary."""
