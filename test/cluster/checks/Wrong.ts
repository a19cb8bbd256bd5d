/** A check found that something is not as it should be. */
import { Schema } from "effect"

export class Wrong extends Schema.TaggedError<Wrong>()("Wrong", { what: Schema.String }) {
  override get message() {
    return this.what
  }
}
