/** Timings of reconnects to NATS, in milliseconds, which all processes share. */

/** How long a client waits between two tries to reconnect, and the maximum random extra. */
export const reconnectMs = { wait: 100, jitter: 100 }

/** How long a process sends nothing after a reconnect, so that other clients have reconnected and receive it. */
export const holdMs = 750
