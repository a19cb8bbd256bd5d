/** The NATS README lists the rights that the code grants. */
import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { accountNames } from "../../../services/admin/NatsAccounts.ts"
import { identities, rightsOf } from "../../../shared/bus/provision/Access.ts"

const readme = readFileSync(join(import.meta.dirname, "../../../deploy/nats/README.md"), "utf8")

it("the NATS README lists the rights of each service", () => {
  const rows = identities.map(({ account, service }) => {
    const may = rightsOf(service, account).map(({ does }) => does).join("; ")
    return `| ${service} | ${accountNames[account]} | ${may} |`
  })
  const table = ["| service | account | may |", "|---|---|---|", ...rows].join("\n")
  assert.include(readme, table)
})
