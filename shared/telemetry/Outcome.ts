/** Values of the label `outcome` of metrics: how a request, a job or a call to a provider ended. */
import { Cause, Exit } from "effect"

export const success = "success"

/** The client has left or the work was interrupted. */
export const cancelled = "cancelled"

/** The outcome of an error: its tag. */
export const ofError = ({ _tag }: { readonly _tag: string }): string => _tag === "Cancelled" ? cancelled : _tag

/** A defect counts as the error that the client gets. */
export const ofExit = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string => {
  if (Exit.isSuccess(exit)) return success
  for (const reason of exit.cause.reasons) if (Cause.isFailReason(reason)) return ofError(reason.error)
  return Cause.hasInterruptsOnly(exit.cause) ? cancelled : "InternalError"
}
