/**
 * Lint rules of the architecture: which folder ("room") may import which, no two folders import each other, and a folder holds
 * at most fifteen source files.
 *
 * `test/system/project/ImportRules.test.ts` violates every rule, and reads the table of rooms from here.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"

interface Room {
  /** Rooms that its files may import, with their subfolders. A room may always import itself. */
  readonly rooms: ReadonlyArray<string>
  /** Packages that its files may not import. */
  readonly packages?: RegExp
  /** The reason, for the message. */
  readonly why: string
}

/** Only shared/nats and shared/bus use the NATS client, to keep the protocol in one place. */
const natsClient = /^@nats-io\//
const allButEffect = /^(?!effect(\/|$))/
const notInBrowser = /^(node:|@nats-io\/|@effect\/platform-node)/

const shared = (name: string): string => `shared/${name}`
const base = ["contract", "telemetry", "bounds"].map(shared)
const bus = [...base, "shared/nats", "shared/bus"]

/** The layers of shared/provider from bottom to top: each may import those before it. */
const providerRooms = ["json", "transport", "call", "dialects", "exchange", "protocols", "health", "routing"]

const providers = Object.fromEntries(providerRooms.map((name, at): [string, Room] => [
  `shared/provider/${name}`,
  {
    rooms: [
      ...base,
      "shared/catalogue",
      "shared/text",
      ...providerRooms.slice(0, at).map((below) => `shared/provider/${below}`)
    ],
    packages: natsClient,
    why: `the rooms of shared/provider import only those below them (${providerRooms.join(", ")}), and no bus`
  }
]))

const service = (rooms: ReadonlyArray<string>, why: string): Room => ({ rooms, packages: natsClient, why })
const anyService = service(["shared", "package.json"], "a service imports shared and itself, no other service")

/** The innermost room of a file applies. */
export const rooms: Readonly<Record<string, Room>> = {
  "shared/contract": { rooms: [], packages: allButEffect, why: "the API is schemas: it imports nothing but effect" },
  "shared/telemetry": { rooms: [], packages: allButEffect, why: "names and exporters import nothing but effect" },
  "shared/bounds": { rooms: [], packages: natsClient, why: "bounds of memory and time know nothing of the gateway" },
  "shared/decisions": { rooms: [], packages: /./, why: "decisions are pages, not code" },
  "shared/text": { rooms: [], packages: natsClient, why: "words, tokens and vectors know nothing of the gateway" },
  "shared/catalogue": {
    rooms: [...base, "shared/keys/Identity.ts"],
    packages: natsClient,
    why: "the catalogue is read without a bus; owners of tokens have the settings of keys"
  },
  "shared/nats": { rooms: base, why: "shared/nats knows connections and storage, not what jobs are" },
  "shared/bus": { rooms: bus, why: "the bus knows jobs, not providers, keys or limits" },
  "shared/limits": { rooms: bus, packages: natsClient, why: "limits stand on nats, contract and telemetry" },
  "shared/keys": { rooms: bus, packages: natsClient, why: "keys stand on nats, contract and telemetry" },
  "shared/teams": {
    rooms: [...bus, "shared/keys", "shared/usage/KeyTeams.ts"],
    packages: natsClient,
    why: "teams stand on nats, and are made of keys"
  },
  "shared/usage": { rooms: bus, packages: natsClient, why: "usage stands on nats, contract and telemetry" },
  "shared/tasks": {
    rooms: [...bus, "shared/usage", "shared/records", "shared/limits", "shared/worker", "shared/webhooks"],
    packages: natsClient,
    why: "tasks stand on the bus, on sealed records, on limits, and on the life of a job"
  },
  "shared/batches": {
    rooms: [
      ...bus,
      ...["catalogue", "files", "limits", "records", "tasks", "usage", "webhooks", "worker"].map(shared)
    ],
    packages: natsClient,
    why: "batches stand on tasks and on files of clients"
  },
  "shared/secrets": {
    rooms: [],
    packages: natsClient,
    why: "the gateway's secret is read from the environment alone"
  },
  "shared/records": {
    rooms: [...bus, "shared/secrets"],
    packages: natsClient,
    why: "records of owners stand on nats and the secret"
  },
  "shared/webhooks": {
    rooms: [...bus, "shared/secrets", "shared/records", "shared/provider/transport/GuardedFetch.ts"],
    packages: natsClient,
    why: "webhooks stand on nats, the secret, and the guarded fetch"
  },
  "shared/pictures": { rooms: ["shared/contract"], packages: natsClient, why: "pictures are read without the gateway" },
  "shared/files": {
    rooms: [...bus, "shared/secrets", "shared/records"],
    packages: natsClient,
    why: "files stand on nats, the secret, and the seals of owners"
  },
  "shared/worker": {
    rooms: [...bus, "shared/usage"],
    packages: natsClient,
    why: "the life of a job knows no providers and no keys: services put the two together"
  },
  "shared/guardrail": {
    rooms: [...bus, ...["catalogue", "provider", "usage", "worker"].map(shared)],
    packages: natsClient,
    why: "the guardrail stands between the life of a job and its providers"
  },
  "shared/painter": { rooms: [], packages: natsClient, why: "the painter paints: it imports nothing of the gateway" },
  "shared/process": { rooms: ["shared"], packages: natsClient, why: "processes are put together from shared" },
  ...providers,
  "services": anyService,
  "services/ingress": service(
    [
      ...["bounds", "contract", "telemetry", "nats", "bus", "process"],
      ...["limits", "keys", "teams", "usage", "tasks", "batches", "files", "records"],
      ...["catalogue/Model.ts", "catalogue/Models.ts", "catalogue/Price.ts"]
    ].map(shared),
    "ingress faces the internet: it holds no workers and no provider keys, and of the catalogue only its models"
  ),
  "services/console/api": {
    rooms: [
      "shared/contract",
      ...["keys/KeyChange.ts", "keys/KeySettings.ts", "keys/PrincipalRecord.ts", "teams/TeamSettings.ts"].map(shared),
      ...["usage/UsageEvent.ts", "usage/UsageTable.ts"].map(shared),
      ...["telemetry/Attributes.ts", "batches/BatchRecord.ts"].map(shared)
    ],
    packages: allButEffect,
    why: "the web app reads the console's API, too: it imports nothing that needs Node"
  },
  "services/console/web": {
    rooms: ["services/console/api", "shared/contract", "shared/keys", "shared/teams", "shared/usage"],
    packages: notInBrowser,
    why: "the web app runs in a browser and knows the API of its service, not its inside"
  },
  "deploy": { rooms: ["shared", "services"], packages: natsClient, why: "only tests import from test" }
}

const isWithin = (path: string, room: string): boolean => path === room || path.startsWith(`${room}/`)

const roomOf = (folder: string): readonly [name: string, room: Room] | undefined => {
  for (let name = folder; name !== "."; name = dirname(name)) {
    const room = rooms[name]
    // one entry stands for all services, each a room of its own
    if (room === anyService) return [folder.split("/").slice(0, 2).join("/"), room]
    if (room !== undefined) return [name, room]
  }
  return undefined
}

const mostFiles = 15
const isSource = (name: string): boolean => /\.(ts|tsx|js)$/.test(name)
/** Empty if the folder does not exist: the compiler reports that import. */
const sourcesIn = (folder: string): ReadonlyArray<string> =>
  existsSync(folder) ? readdirSync(folder).filter(isSource).toSorted() : []

const importsIn = /(?:^|\n)\s*(?:import|export)\b[^"'`;]*?["'](\.[^"']+)["']|\bimport\(\s*["'](\.[^"']+)["']/g
const foldersImportedBy = new Map<string, ReadonlySet<string>>()

/** The folders that the files of a folder import from. */
const importedFolders = (folder: string): ReadonlySet<string> => {
  let folders = foldersImportedBy.get(folder)
  if (folders === undefined) {
    const specifiers = sourcesIn(folder).flatMap((name) =>
      [...readFileSync(join(folder, name), "utf8").matchAll(importsIn)].map(([, still, lazy]) => still ?? lazy ?? "")
    )
    folders = new Set(specifiers.map((specifier) => dirname(join(folder, specifier))))
    foldersImportedBy.set(folder, folders)
  }
  return folders
}

interface Node {
  readonly source?: { readonly value?: unknown } | null
}
interface Context {
  readonly cwd: string
  readonly filename: string
  readonly report: (problem: { readonly message: string; readonly node: Node }) => void
}

/** Calls `check` with each import, re-export and dynamic import of a file. */
const eachImport = (check: (specifier: string, node: Node) => void) => {
  const visit = (node: Node) => {
    if (typeof node.source?.value === "string") check(node.source.value, node)
  }
  return {
    ImportDeclaration: visit,
    ExportNamedDeclaration: visit,
    ExportAllDeclaration: visit,
    ImportExpression: visit
  }
}

export default {
  meta: { name: "rooms" },
  rules: {
    imports: {
      create({ cwd, filename, report }: Context) {
        const file = relative(cwd, filename)
        const [name, room] = roomOf(dirname(file)) ?? []
        if (name === undefined || room === undefined) return {}
        return eachImport((specifier, node) => {
          const target = specifier.startsWith(".") ? join(dirname(file), specifier) : undefined
          const isAllowed = target === undefined
            ? room.packages?.test(specifier) !== true
            : [name, ...room.rooms].some((allowed) => isWithin(target, allowed))
          if (!isAllowed) report({ node, message: `${name} may not import ${target ?? specifier}: ${room.why}` })
        })
      }
    },
    "one-way": {
      create({ cwd, filename, report }: Context) {
        const folder = dirname(filename)
        return eachImport((specifier, node) => {
          if (!specifier.startsWith(".") || !isSource(specifier)) return
          const other = dirname(join(folder, specifier))
          if (other === folder || other.includes("node_modules") || !importedFolders(other).has(folder)) return
          const [here, there] = [folder, other].map((path) => relative(cwd, path))
          report({ node, message: `${here} and ${there} import each other: let one stand above the other` })
        })
      }
    },
    size: {
      create({ filename, report }: Context) {
        return {
          Program(node: Node) {
            const sources = sourcesIn(dirname(filename))
            if (sources.length <= mostFiles || filename.endsWith(`/${sources[0]}`) === false) return
            report({
              node,
              message: `this folder holds ${sources.length} source files, ${mostFiles} at most: split it`
            })
          }
        }
      }
    }
  }
}
