/** Polls work at a provider until it has ended. */
import { Duration, Effect, Option, Schedule } from "effect"
import { isTransient, type JobError } from "../../contract/JobError.ts"

/** Retries of calls that may yet succeed: five, over half a minute. */
export const patience = Schedule.exponential("1 second").pipe(Schedule.jittered, Schedule.upTo({ times: 5 }))

/** Whether the error says nothing about the work, which the provider still does and charges for. */
const isOutage = (error: JobError): boolean =>
  isTransient(error) && !(error._tag === "ProviderFailed" && ["error", "malformed"].includes(error.reason))

/** The longest pause that a provider can ask for, in milliseconds. */
const longestPauseMs = 60_000

const askedPauseOf = (error: JobError): Duration.Duration =>
  Duration.millis(Math.min("retryAfterMs" in error ? error.retryAfterMs ?? 0 : 0, longestPauseMs))

/** Retries during an outage, or while a limit is reached. */
const outage = Schedule.min([Schedule.exponential("1 second"), Schedule.spaced("30 seconds")]).pipe(
  Schedule.jittered,
  Schedule.upTo({ duration: "10 minutes" }),
  Schedule.setInputType<JobError>(),
  Schedule.modifyDelay(({ duration, input }) => Effect.succeed(Duration.max(duration, askedPauseOf(input))))
)

/** The effect to run when the work has ended; `None` while it runs. */
export type Ended<A> = Option.Option<Effect.Effect<A, JobError>>

/**
 * Polls until the work has ended, then runs the effect for its end. Retries a failed poll, longer if the provider is down than if it
 * answers. Every poll has the full number of retries.
 */
export const untilEnded = <A>(
  poll: Effect.Effect<Ended<A>, JobError>,
  everyMs: number
): Effect.Effect<A, JobError> =>
  poll.pipe(
    Effect.retry({ schedule: outage, while: isOutage }),
    Effect.retry({ schedule: patience, while: (error) => isTransient(error) && !isOutage(error) }),
    Effect.repeat({ until: Option.isSome, schedule: Schedule.spaced(everyMs) }),
    Effect.flatMap(Option.getOrElse(() => Effect.never))
  )
