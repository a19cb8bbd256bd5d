/**
 * How a process gets its connection to NATS: by one try, or, where it is a service that may have started before its server,
 * by as many as `NATS_WAIT_MS` leaves time for. What no waiting can mend ends either at once.
 */
import type { NatsConnection } from "@nats-io/nats-core"
import { errors } from "@nats-io/nats-core"
import type { NodeConnectionOptions } from "@nats-io/transport-node"
import { connect as dial } from "@nats-io/transport-node"
import { Config, Effect, Predicate, Schedule, Schema } from "effect"
import { atLeast } from "../contract/Fields.ts"
import { variables } from "./Credentials.ts"
import { reconnectMs } from "./Reconnect.ts"
import type { Account } from "./Storage.ts"

/** No server can be used: none answers, or the one that does refuses, cannot be trusted or is too old. */
export class NatsUnavailable extends Schema.TaggedError<NatsUnavailable>()("NatsUnavailable", {
  servers: Schema.String,
  detail: Schema.String,
  /** What whoever runs the process can do about it. */
  advice: Schema.String,
  /** Whether it may be otherwise a moment later. */
  mayPass: Schema.Boolean
}) {
  override get message() {
    const servers = this.servers.replaceAll(/[^/,\s]*@/g, "")
    return `NATS at ${servers} cannot be used (${this.detail}): ${this.advice}`
  }
}

/** One try at every server. `servers` are separated by commas; the account is that of the credentials in `options`. */
export const connect = (
  servers: string,
  options: NodeConnectionOptions,
  account: Account = "data"
): Effect.Effect<NatsConnection, NatsUnavailable> =>
  Effect.callback<NatsConnection, NatsUnavailable>((resume) => {
    let isWanted = true
    const all = { ...behaviour, ...options, servers: servers.split(",").map((server) => server.trim()) }
    dial(all).then(
      (connection) => isWanted ? resume(Effect.succeed(connection)) : void connection.close(),
      (cause) => resume(new NatsUnavailable({ servers, ...whyOf(cause, account) }))
    )
    return Effect.sync(() => {
      isWanted = false
    })
  }).pipe(Effect.tap((connection) => requireVersion(connection, servers)))

/**
 * Tries again and again for the milliseconds of `NATS_WAIT_MS` (default 60,000): in a cluster services and NATS start in no
 * order, and a service that ended each time would be started again more and more rarely.
 */
export const patiently = (
  once: Effect.Effect<NatsConnection, NatsUnavailable>
): Effect.Effect<NatsConnection, NatsUnavailable | Config.ConfigError> =>
  Effect.gen(function*() {
    const waitMs = yield* Config.schema(atLeast(0), "NATS_WAIT_MS").pipe(Config.withDefault(60_000))
    if (waitMs === 0) return yield* once
    let hasWaited = false
    const schedule = backingOff.pipe(
      Schedule.upTo({ duration: waitMs }),
      Schedule.setInputType<NatsUnavailable>(),
      Schedule.while(({ input }) => input.mayPass),
      Schedule.tap(({ attempt, elapsed, elapsedSincePrevious, input }) => {
        hasWaited = true
        const isTime = attempt === 1 ||
          Math.floor(elapsed / toldEveryMs) > Math.floor((elapsed - elapsedSincePrevious) / toldEveryMs)
        return isTime ? Effect.logWarning("waiting for NATS", { detail: input.message }) : Effect.void
      })
    )
    const connection = yield* once.pipe(
      Effect.retry(schedule),
      Effect.mapError((error) =>
        error.mayPass
          ? new NatsUnavailable({ ...error, detail: `${error.detail}, for the ${waitMs / 1_000} s of NATS_WAIT_MS` })
          : error
      )
    )
    if (hasWaited) yield* Effect.logInfo("NATS is there")
    return connection
  })

const backingOff = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("2 seconds")]).pipe(
  Schedule.jittered
)

/** How often whoever waits says so. */
const toldEveryMs = 30_000

/** How a connection behaves, whichever server it is to. Times are in milliseconds. */
const behaviour = {
  maxReconnectAttempts: -1,
  // rights may be on their way to the server: while a key is changed it may be unknown there for a moment
  ignoreAuthErrorAbort: true,
  reconnectTimeWait: reconnectMs.wait,
  reconnectJitter: reconnectMs.jitter,
  pingInterval: 5_000,
  maxPingOut: 2,
  timeout: 5_000,
  noAsyncTraces: true,
  /**
   * How much the client gathers before it writes without waiting for the end of the turn, in bytes. Its own default of
   * 32 KiB is a handful of answers, and writes several times where once is enough. An option without a type.
   */
  pendingLimit: 512 * 1024
} as const

const start = "start a server there, or name another in NATS_URL"

const whyOf = (cause: unknown, account: Account): Pick<NatsUnavailable, "detail" | "advice" | "mayPass"> => {
  const detail = cause instanceof Error ? cause.message : "cannot connect"
  const code = codeOf(cause)
  if (cause instanceof errors.AuthorizationError) {
    const { creds, seed, user } = variables[account]
    const advice = `is it the identity, ${seed}, ${creds} or ${user}, that this server knows?`
    // a server that has much to do says this of credentials that it has not come to
    return { detail, advice, mayPass: /timeout/i.test(detail) }
  }
  if (code === "ERR_INVALID_URL") {
    return {
      detail: "no address",
      advice: "NATS_URL must be such as nats://127.0.0.1:4222, or several with commas",
      mayPass: false
    }
  }
  if (isSilence(cause, code)) return { detail, advice: start, mayPass: true }
  const isTls = code !== undefined || /tls/i.test(detail)
  return { detail, advice: isTls ? "see NATS_CA, NATS_CERT and NATS_KEY" : start, mayPass: false }
}

/** Whether the network, the resolver or nobody at all has answered; the codes of systems begin with E, Node's own with ERR_. */
const isSilence = (cause: unknown, code: string | undefined): boolean =>
  cause instanceof errors.TimeoutError ||
  (code === undefined ? cause instanceof errors.ConnectionError && !/tls/i.test(cause.message) : /^E(?!RR)/.test(code))

/** The code of an error or of what it wraps. */
const codeOf = (error: unknown): string | undefined => {
  if (Predicate.hasProperty(error, "code") && Predicate.isString(error.code)) return error.code
  return Predicate.hasProperty(error, "cause") ? codeOf(error.cause) : undefined
}

/** The server of Debian 12. */
const oldest = [2, 9, 10] as const

const requireVersion = (connection: NatsConnection, servers: string) => {
  const version = connection.info?.version ?? "unknown"
  if (isSupported(version)) return Effect.void
  const detail = `version ${version} is older than ${oldest.join(".")}`
  return Effect.andThen(
    Effect.promise(() => connection.close()),
    new NatsUnavailable({ servers, detail, advice: start, mayPass: false })
  )
}

const isSupported = (version: string): boolean => {
  const parts = version.split(".").map((part) => Number.parseInt(part, 10))
  for (const [index, wanted] of oldest.entries()) {
    const part = parts[index] ?? 0
    if (part !== wanted) return part > wanted
  }
  return true
}
