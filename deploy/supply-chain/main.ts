/**
 * `npm run supply-chain`: checks the dependencies and what is committed about them, and exits with 1 if something is wrong.
 *
 *     npm run supply-chain                 checks, without the network
 *     npm run supply-chain -- write        writes sbom.cdx.json and dependencies.md; asks the registry only about new packages
 *     npm run supply-chain -- update       does the same, and asks the registry about every package
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect } from "effect"
import { faults, update } from "./SupplyChain.ts"

const check = Effect.suspend(() => {
  const found = faults()
  if (found.length === 0) {
    return Console.log("dependencies, SBOM and list are in order; all images and actions are pinned")
  }
  process.exitCode = 1
  return Console.error(found.join("\n"))
})

const unknown = (command: string) =>
  Effect.suspend(() => {
    process.exitCode = 1
    return Console.error(`Unknown command ${command}: pass write or update, or nothing to check`)
  })

const commands: Readonly<Record<string, typeof check | ReturnType<typeof update>>> = {
  check,
  write: Effect.andThen(update("new"), check),
  update: Effect.andThen(update("all"), check)
}

const [command = "check"] = process.argv.slice(2)
NodeRuntime.runMain(commands[command] ?? unknown(command))
