/**
 * The rule by which all processes take an edit of the catalogue, or none does. A process that has read and checked an edit asks the
 * others, takes the edit if none objects, and tells them, so that they take it at the same time.
 *
 * Only processes that run the same catalogue as the asking one can object. So a process that has started with another file, as in a
 * rolling update of the pods, holds up nothing.
 */
import { Context, Effect, Schema, type Scope } from "effect"

/** Identifies a catalogue by hashes: of its whole text, which ingress may not have, and of the models that clients see. */
export const Revision = Schema.Struct({
  whole: Schema.optionalKey(Schema.String),
  /** Absent if the models cannot be read. */
  models: Schema.optionalKey(Schema.String)
})
export type Revision = typeof Revision.Type

/** Whether two processes mean the same catalogue, as far as both know it; `undefined` if that is unknown. */
const compare = (a: Revision, b: Revision): boolean | undefined => {
  if (a.whole !== undefined && b.whole !== undefined) return a.whole === b.whole
  return a.models === undefined || b.models === undefined ? undefined : a.models === b.models
}

export const isSame = (a: Revision, b: Revision): boolean => compare(a, b) === true

/** A step from the catalogue in use to another one. */
export const Edit = Schema.Struct({ from: Revision, to: Revision })
export type Edit = typeof Edit.Type

/** What a process knows about catalogues: the one that it uses, and the file's if it is another one. */
export interface Opinion {
  readonly current: Revision
  readonly candidate?: {
    readonly revision: Revision
    /** Why the process cannot use it; absent if it can. */
    readonly mistake: string | undefined
  }
}

/** The objection of a process that has not read the edit yet. */
export const unread = "has not read this catalogue"

/** Why a process objects to an edit; `undefined` if it does not. */
export const objectionTo = ({ from, to }: Edit, { candidate, current }: Opinion): string | undefined => {
  const isRead = candidate === undefined ? false : compare(candidate.revision, to)
  if (isRead === true) return candidate?.mistake
  if (isSame(current, to) || !isSame(current, from)) return undefined
  // an unreadable file may be this edit
  return (isRead === undefined ? candidate?.mistake : undefined) ?? unread
}

/** Connects the processes. By default a process is alone. */
export const Agreement = Context.Reference<{
  /** Answers the others until the scope closes, and reports what another process found all to agree on. */
  readonly join: (
    opinion: () => Opinion,
    agreed: (to: Revision) => void
  ) => Effect.Effect<void, never, Scope.Scope>
  /** The objections of other processes, each with the name of its process. */
  readonly objections: (edit: Edit) => Effect.Effect<ReadonlyArray<string>>
  /** Tells the others that no process objected. */
  readonly announce: (edit: Edit) => Effect.Effect<void>
}>("shared/catalogue/Agreement", {
  defaultValue: () => ({
    join: () => Effect.void,
    objections: () => Effect.succeed([]),
    announce: () => Effect.void
  })
})
