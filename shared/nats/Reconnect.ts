/** The times of a reconnect to NATS, in milliseconds, which all processes share. */

/** How long a client whose server is away waits between two tries to reconnect, and how much longer by chance. */
export const reconnectMs = { wait: 100, jitter: 100 }

/** How long nothing is sent after NATS has come back: who tries to reconnect again and again is then back too, and hears it. */
export const holdMs = 750
