/**
 * Scripts: small programs with the real client that run against the model of NATS and against real servers, and return what they
 * saw as a short text. Whatever a real server does must be possible in the model.
 */
import type { NatsConnection } from "@nats-io/nats-core"

/** A client with a connection that can break. */
export interface Client {
  readonly connection: NatsConnection
  /** Breaks the connection: both sides notice at once, and what is on its way is lost. */
  readonly cut: () => void
  /** Stops all bytes, without notice to either side. */
  readonly hold: () => void
}

export type Strike = "kill" | "freeze"

/** One run of a script. */
export interface Stage {
  /** Unique to the run: a name for streams, and the first token of subjects. */
  readonly name: string
  /** Connects to a server, from 0. */
  readonly connect: (server?: number) => Promise<Client>
  readonly sleep: (ms: number) => Promise<void>
  /** Sleeps for at least this long; a longer sleep must not change the outcome. */
  readonly rest: (ms: number) => Promise<void>
  /** Waits until every run of the script has called it. */
  readonly together: () => Promise<void>
  /** Strikes a server, shortly after `meanwhile` has begun. Ends the run if another one is hit instead. */
  readonly strike: (kind: Strike, server: number, meanwhile?: () => void) => Promise<void>
  /** Starts or continues what was struck. */
  readonly heal: () => Promise<void>
}

/** Ends a run without an outcome. */
export class Skipped extends Error {}

export interface Script {
  readonly name: string
  /** The property of the model that it confirms. */
  readonly shows: string
  /** Whether it needs a cluster of three. */
  readonly isClustered: boolean
  readonly run: (stage: Stage) => Promise<string>
}

/** How many servers a cluster has. */
export const clusterSize = 3
