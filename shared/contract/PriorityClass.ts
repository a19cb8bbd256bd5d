/** The urgency of a key's requests, compared with those of other keys. */
import { Schema } from "effect"

/** `interactive`: a person reads the answer as it arrives. `standard`: a client waits. `batch`: runs when there is capacity. */
export const PriorityClass = Schema.Literals(["interactive", "standard", "batch"])
export type PriorityClass = typeof PriorityClass.Type
