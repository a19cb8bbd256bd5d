/** The page about NATS says what the table of rights says. */
import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { natsServices, type Right, rights } from "../../shared/bus/Access.ts"

const readme = readFileSync(join(import.meta.dirname, "../../deploy/nats/README.md"), "utf8")

it("lists what each service may do on NATS", () => {
  const rows = natsServices.map((service) => {
    const all: ReadonlyArray<Right> = rights[service]
    return `| ${service} | ${all.map(({ does }) => does).join("; ")} |`
  })
  const table = ["| service | may |", "|---|---|", ...rows].join("\n")
  assert.include(readme, table)
})
