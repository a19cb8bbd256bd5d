/** Follows work at a provider that has to be asked again and again how far it is. */
import { Effect, Option, Schedule } from "effect"
import { isTransient, type JobError } from "../contract/JobError.ts"

/** For calls to a provider that may yet succeed: five more, over half a minute. */
export const patience = Schedule.exponential("1 second").pipe(Schedule.jittered, Schedule.upTo({ times: 5 }))

/** What is to be done with work that has ended; `None` while it goes on. */
export type Ended<A> = Option.Option<Effect.Effect<A, JobError>>

/**
 * Looks until there is an end, and then does what that asks for. A look that fails is repeated; that it failed at one
 * time is forgotten at the next.
 */
export const untilEnded = <A>(
  look: Effect.Effect<Ended<A>, JobError>,
  everyMs: number
): Effect.Effect<A, JobError> =>
  look.pipe(
    Effect.retry({ schedule: patience, while: isTransient }),
    Effect.repeat({ until: Option.isSome, schedule: Schedule.spaced(everyMs) }),
    Effect.flatMap(Option.getOrElse(() => Effect.never))
  )
