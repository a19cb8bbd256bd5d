/**
 * The connections of a process to NATS, one per account: `Nats` for jobs and everything that workers write, `ControlNats` for
 * keys, their limits, spending and sessions, which workers must not reach.
 *
 * A connection reconnects forever. While it is lost, `isConnected` is false, and its users wait within their own deadlines.
 */
import type { Msg, NatsConnection, Subscription } from "@nats-io/nats-core"
import { createInbox, nuid } from "@nats-io/nats-core"
import { Clock, Config, Context, Effect, identity, Layer, Option, Stream } from "effect"
import * as Metrics from "../telemetry/Metrics.ts"
import { ServiceName } from "../telemetry/ServiceName.ts"
import { briefly, connect, type NatsUnavailable, patiently, warnOfOldCluster } from "./Connect.ts"
import * as Credentials from "./Credentials.ts"
import { Outbox } from "./Outbox.ts"
import { holdMs, ServerChoice } from "./Reconnect.ts"
import { monotonicMs } from "../bounds/MonotonicClock.ts"
import type { Account, InAccount } from "./Storage.ts"

export class Nats extends Context.Service<Nats, {
  readonly connection: NatsConnection
  readonly outbox: Outbox
  /** Unique to this run of the process. Base62, so it is safe as a subject token. */
  readonly id: string
  readonly isConnected: () => boolean
  /** Whether the server is the only one. Then subscriptions and requests can be lost only with the connection. */
  readonly isAlone: () => boolean
  /** The id of the server to which the process is connected, or was last. */
  readonly server: () => string
  /**
   * Whether the connection has been up for a while. Right after an outage other processes may still be reconnecting, so
   * missing listeners on their subjects do not mean that they are gone.
   */
  readonly isSettled: () => boolean
  /** How long the connection has been lost, in milliseconds; 0 while it is up. */
  readonly awayForMs: () => number
  /** Returns once the server has read all that was published, or after a moment if it does not answer. */
  readonly flush: Effect.Effect<void>
  /** A new subject for answers, to which only this service may subscribe. */
  readonly inbox: () => string
  /** Receives every message of a subject. Logs exceptions of `receive`, which in the client's reader would end the connection. */
  readonly subscribe: (subject: string, receive: (message: Msg) => void) => Subscription
  /**
   * Runs `listener` after every reconnect: the server may be a different one, or may have lost what it held in memory. Returns a
   * function that unsubscribes.
   */
  readonly onReconnect: (listener: () => void) => () => void
}>()("shared/nats/Nats") {
  /**
   * The connection of a command, which fails if no server answers. Reads `NATS_URL` (servers separated by commas) and the variables
   * of `Credentials.ts`.
   */
  static readonly layer = Layer.effect(Nats, Effect.suspend(() => make("data", briefly)))

  /** The connection of a service, which waits for a server: see `Connect.ts`. */
  static readonly layerPatient = Layer.effect(Nats, Effect.suspend(() => make("data", patiently)))
}

/** The connection to the control account. On a server without accounts it reaches the same data as `Nats`. */
export class ControlNats extends Context.Service<ControlNats, Nats["Service"]>()("shared/nats/ControlNats") {
  /** The connection of a command. Reads `NATS_URL` and the control account's variables of `Credentials.ts`. */
  static readonly layer = Layer.effect(ControlNats, Effect.suspend(() => make("control", briefly)))

  /** The connection of a service. */
  static readonly layerPatient = Layer.effect(ControlNats, Effect.suspend(() => make("control", patiently)))
}

/** Both connections of a command. */
export const layerBoth = ControlNats.layer.pipe(Layer.provideMerge(Nats.layer))

/** Both connections of a service, made one after the other, so that the service waits for NATS, and logs the wait, only once. */
export const layerBothPatient = ControlNats.layerPatient.pipe(Layer.provideMerge(Nats.layerPatient))

/** The connection to the account that stores `K`. */
export type NatsOf<K extends InAccount> = { readonly data: Nats; readonly control: ControlNats }[K["account"]]

export const natsOf = <K extends InAccount>({ account }: K): Effect.Effect<Nats["Service"], never, NatsOf<K>> =>
  // `NatsOf` maps each account to its service
  (account === "control" ? ControlNats : Nats) as unknown as Effect.Effect<Nats["Service"], never, NatsOf<K>>

/** How long the last messages of a closing process may take to leave, in milliseconds. */
const flushWithinMs = 500

/** Whether the server has answered within this time, in milliseconds, that it has read all that was published. */
const flush = (connection: NatsConnection, withinMs: number): Effect.Effect<boolean> =>
  Effect.promise(() => connection.flush().catch(() => undefined)).pipe(
    Effect.timeoutOption(withinMs),
    Effect.map(Option.isSome)
  )

const make = <E>(
  account: Account,
  acquire: (once: Effect.Effect<NatsConnection, NatsUnavailable>) => Effect.Effect<NatsConnection, E>
) =>
  Effect.gen(function*() {
    const servers = yield* Config.String("NATS_URL").pipe(Config.withDefault("nats://127.0.0.1:4222"))
    const credentials = yield* Credentials.options(account)
    const service = yield* ServiceName
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const reconnects = Metrics.natsReconnects(account)
    const errors = Metrics.natsErrors(account)

    // also while a service waits for its first connection
    let isConnected = () => false
    yield* Metrics.observe(Metrics.natsConnected(account), () => isConnected() ? 1 : 0)
    const choice = new ServerChoice()
    const options = { ...credentials, name: service, inboxPrefix: Credentials.inboxPrefix(service) }
    const connection = yield* Effect.acquireRelease(
      acquire(connect(servers, options, account, choice)),
      (connection) =>
        // without a flush, the client drops what was published just before it closes
        Effect.andThen(
          flush(connection, flushWithinMs),
          Effect.promise(() => connection.close()).pipe(Effect.timeoutOption("2 seconds"))
        ),
      { interruptible: true }
    )

    // the control account is on the same servers
    if (account === "data") yield* warnOfOldCluster(connection)
    const now = monotonicMs(yield* Clock.Clock)
    let awaySince: number | undefined
    let backSince = Number.NEGATIVE_INFINITY
    isConnected = () => awaySince === undefined && !connection.isClosed()
    // counters start at 0, so that the first increase is visible
    Metrics.update(reconnects, 0)
    Metrics.update(errors, 0)
    for (const request of ["provision", "confirm", "submit", "limits"]) {
      Metrics.update(Metrics.jetStreamErrors(request), 0)
    }
    const reconnected = new Set<() => void>()
    const outbox = new Outbox(connection, (subject, cause) => {
      // after close nothing can be sent, and no caller expects it
      if (connection.isClosed()) {
        return
      }
      run(
        Effect.logWarning("NATS client refused a message", { subject: subject.split(".")[0], cause: String(cause) })
      )
    })

    yield* Stream.fromAsyncIterable(connection.status(), Effect.die).pipe(
      Stream.runForEach((status) => {
        switch (status.type) {
          case "disconnect":
            awaySince ??= now()
            outbox.hold()
            return Effect.logWarning("NATS connection lost")
          case "reconnect":
            awaySince = undefined
            backSince = now()
            outbox.releaseAfter(holdMs)
            Metrics.update(reconnects, 1)
            for (const listener of reconnected) listener()
            return Effect.logInfo("NATS connection is back")
          case "error":
            Metrics.update(errors, 1)
            return Effect.logWarning("NATS reported an error", { error: status.error.message })
          default:
            return Effect.void
        }
      }),
      Effect.forkScoped
    )
    const isAlone = () => connection.getServers().length < 2
    yield* Effect.suspend(() => Effect.sleep(isAlone() ? lookAroundEveryMs : askEveryMs)).pipe(
      Effect.andThen(leaveStalledServer(connection, choice, now, isConnected)),
      Effect.forever,
      Effect.forkScoped
    )
    return Nats.of({
      connection,
      outbox,
      id: nuid.next(),
      isConnected,
      isAlone,
      server: () => connection.info?.server_id ?? "",
      isSettled: () => awaySince === undefined && now() - backSince > settlingMs,
      awayForMs: () => awaySince === undefined ? 0 : now() - awaySince,
      flush: Effect.asVoid(flush(connection, flushWithinMs)),
      inbox: () => createInbox(Credentials.inboxPrefix(service)),
      subscribe: (subject, receive) =>
        connection.subscribe(subject, {
          callback: (error, message) => {
            if (error !== null) return
            try {
              receive(message)
            } catch (cause) {
              run(Effect.logError("a message handler failed", cause))
            }
          }
        }),
      onReconnect: (listener) => {
        reconnected.add(listener)
        return () => void reconnected.delete(listener)
      }
    })
  }).pipe(account === "data" ? identity : Effect.annotateLogs({ account }))

/** How often a client of several servers pings its server, in milliseconds; see `answerWithinMs`. */
const askEveryMs = 500
/** How often a client of a single server checks whether there are others now, in milliseconds. */
const lookAroundEveryMs = 10_000
const answerWithinMs = 1_000

/** Connects to another server of the cluster if this one does not answer: it may be frozen, with its connections open. */
const leaveStalledServer = Effect.fnUntraced(function*(
  connection: NatsConnection,
  choice: ServerChoice,
  now: () => number,
  isConnected: () => boolean
) {
  if (!isConnected() || connection.getServers().length < 2) return
  const askedAt = now()
  const { inBytes } = connection.stats()
  const hasAnswered = yield* flush(connection, answerWithinMs)
  // on a slow link the answer may wait behind other messages, such as 8 MiB of a snapshot
  const isSending = connection.stats().inBytes > inBytes
  // after a stall of this process, the answer may have arrived but not been read
  const wasStalled = now() - askedAt > 1.5 * answerWithinMs
  if (hasAnswered || isSending || wasStalled || !isConnected()) return
  yield* Effect.logWarning("the NATS server does not answer: changing to another")
  choice.avoid(connection.getServer())
  yield* Effect.promise(() => connection.reconnect())
})

/** The time after a server's return within which all clients reconnect, in milliseconds: many times `reconnectMs`. */
const settlingMs = 3_000
