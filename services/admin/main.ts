/** The operator's commands as a program. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { run } from "./Admin.ts"

const [, , ...words] = process.argv

run(words).pipe(
  Effect.map((code) => {
    process.exitCode = code
  }),
  NodeRuntime.runMain
)
