// Loaded into a process with --import. The heap of the process grows by 2 MB per second.

const kept: number[][] = []
setInterval(() => kept.push(Array.from({ length: 25_000 }, Math.random)), 100).unref()

export {}
