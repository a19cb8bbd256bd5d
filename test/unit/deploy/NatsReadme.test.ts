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
  assert.deepStrictEqual(rows.filter((row) => !readme.includes(row)), [], "rows for the table in deploy/nats/README.md")
  assert.include(readme, ["| service | account | may |", "|---|---|---|", ...rows].join("\n"), "rows are out of order")
})
