// Loaded into a process with --import: its heap grows by 2 MB a second.

const kept: number[][] = []
setInterval(() => kept.push(Array.from({ length: 25_000 }, Math.random)), 100).unref()

export {}
