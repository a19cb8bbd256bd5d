/** How urgent the requests of a key are beside those of others. */
import { Schema } from "effect"

/**
 * `interactive`: somebody is waiting and reading. `standard`: somebody is waiting. `batch`: whenever there is room.
 */
export const PriorityClass = Schema.Literals(["interactive", "standard", "batch"])
export type PriorityClass = typeof PriorityClass.Type
