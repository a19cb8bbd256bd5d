/** How clients reconnect to NATS: the timings, which all processes share, and the choice of a server. */
import type { Server } from "@nats-io/nats-core"
import { DateTime } from "effect"

/** How long a client waits between two tries to reconnect, and the maximum random addition, in milliseconds. */
export const reconnectMs = { wait: 100, jitter: 100 }

/**
 * How long a process holds its messages after a reconnect, in milliseconds, so that their receivers can reconnect too. Ends earlier
 * once all processes that it works with have answered.
 */
export const holdMs = 750

/** Chooses the server for each try to reconnect: in turn, but avoids for a while a server that does not answer. */
export class ServerChoice {
  #avoided: { readonly server: string; tries: number } | undefined

  /** `server` (`host:port`) does not answer; it stays out of the next few tries. */
  avoid(server: string): void {
    this.#avoided = { server, tries: 6 }
  }

  /** Implements the client's option `reconnectToServer`. The first server of the pool is the next in turn. */
  readonly next = (pool: ReadonlyArray<Server>): { readonly server: Server; readonly delay: number } | null => {
    const avoided = this.#avoided
    if (avoided !== undefined && --avoided.tries <= 0) this.#avoided = undefined
    const server = pool.find(({ listen }) => listen !== avoided?.server) ?? pool[0]
    return server === undefined ? null : { server, delay: remainingMs(server) }
  }
}

/** The time until this server may be tried again, in milliseconds. */
const remainingMs = ({ lastConnect }: Server): number => {
  const waitMs = reconnectMs.wait + Math.random() * reconnectMs.jitter
  // the wall clock, because `lastConnect` is by it
  const now = DateTime.toEpochMillis(DateTime.nowUnsafe())
  return Math.min(waitMs, Math.max(0, lastConnect + waitMs - now))
}
