/** Follows work at a provider that has to be asked again and again how far it is. */
import { Duration, Effect, Option, Schedule } from "effect"
import { isTransient, type JobError } from "../../contract/JobError.ts"

/** For calls to a provider that may yet succeed: five more, over half a minute. */
export const patience = Schedule.exponential("1 second").pipe(Schedule.jittered, Schedule.upTo({ times: 5 }))

/** Whether the provider says nothing of the work: it still has it, and is paid for it. */
const isAway = (error: JobError): boolean =>
  isTransient(error) && !(error._tag === "ProviderFailed" && ["error", "malformed"].includes(error.reason))

/** How soon it is asked again at the latest, whatever it wants. */
const longestPauseMs = 60_000

const wishOf = (error: JobError): Duration.Duration =>
  Duration.millis(Math.min("retryAfterMs" in error ? error.retryAfterMs ?? 0 : 0, longestPauseMs))

/** An outage, or a limit that is reached, takes its time. */
const outage = Schedule.min([Schedule.exponential("1 second"), Schedule.spaced("30 seconds")]).pipe(
  Schedule.jittered,
  Schedule.upTo({ duration: "10 minutes" }),
  Schedule.setInputType<JobError>(),
  Schedule.modifyDelay(({ duration, input }) => Effect.succeed(Duration.max(duration, wishOf(input))))
)

/** What is to be done with work that has ended; `None` while it goes on. */
export type Ended<A> = Option.Option<Effect.Effect<A, JobError>>

/**
 * Looks until there is an end, and then does what that asks for. A look that fails is repeated, and longer where the
 * provider is away than where it answers; that it failed at one time is forgotten at the next.
 */
export const untilEnded = <A>(
  look: Effect.Effect<Ended<A>, JobError>,
  everyMs: number
): Effect.Effect<A, JobError> =>
  look.pipe(
    Effect.retry({ schedule: outage, while: isAway }),
    Effect.retry({ schedule: patience, while: (error) => isTransient(error) && !isAway(error) }),
    Effect.repeat({ until: Option.isSome, schedule: Schedule.spaced(everyMs) }),
    Effect.flatMap(Option.getOrElse(() => Effect.never))
  )
