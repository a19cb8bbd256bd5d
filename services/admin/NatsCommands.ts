/**
 * `nats keys FOLDER`: an identity for each service in each account of NATS that it is in, and what a server has to know of
 * them.
 *
 * The folder is the truth: `<identity>.nk` holds a seed, `<identity>.old.nk` the one before it while it is being changed,
 * and from these `accounts.conf` is written, for the server, and `kustomization.yaml`, by which `kubectl apply -k` hands
 * each service its own. `former-rights` is there while processes that know one account only are being replaced.
 */
import { Console, Effect, FileSystem, Path, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { identities, type Identity, natsServices } from "../../shared/bus/provision/Access.ts"
import { generate, publicKeyOf } from "../../shared/nats/Credentials.ts"
import { type PublicKeys, renderAccounts } from "./NatsAccounts.ts"
import { failPlainly } from "./Plainly.ts"

/** The mark in the folder. */
const formerRights = "former-rights"

const current = ({ name }: Identity): string => `${name}.nk`
const former = ({ name }: Identity): string => `${name}.old.nk`

/** The files of a service's Secret: a seed for each account that it is in. */
const filesOf = (service: string): ReadonlyArray<string> =>
  identities.filter((identity) => identity.service === service)
    .map((identity) => `${identity.account === "data" ? "seed" : "control-seed"}=${current(identity)}`)

/** Secrets and a ConfigMap under the names that the manifests expect. */
const kustomization =
  `# Made by \`admin nats keys\`: \`kubectl apply -k\` of this folder makes what the manifests refer to.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
generatorOptions:
  disableNameSuffixHash: true
configMapGenerator:
  - name: nats-accounts
    namespace: nats
    files: [accounts.conf]
secretGenerator:
${
    natsServices.map((service) =>
      `  - name: nats-${service}\n    namespace: model-gateway\n    files: [${filesOf(service).join(", ")}]`
    ).join("\n")
  }
`

const keys = Command.make(
  "keys",
  {
    folder: Argument.String("folder").pipe(Argument.withDescription("Where the seeds are kept, readable by you alone")),
    rotate: Flag.Boolean("rotate").pipe(
      Flag.withDescription(
        "Make new keys; the old ones stay good until `--retire`, and until then this makes no newer ones"
      ),
      Flag.withDefault(false)
    ),
    retire: Flag.Boolean("retire").pipe(
      Flag.withDescription("Forget the keys that `--rotate` has replaced, and rights that only a former version needs"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(function*({ folder, retire, rotate }) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const file = (name: string) => path.join(folder, name)
    const seedIn = (name: string) => Effect.map(fs.readFileString(file(name)), Redacted.make<string>)
    yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
    // seeds of a version that knew one account: its processes go on with their rights until they are replaced
    const known = yield* Effect.filter(identities, (identity) => fs.exists(file(current(identity))))
    const isUpgrade = known.length > 0 && known.every(({ account }) => account === "data")
    if (isUpgrade) yield* fs.writeFileString(file(formerRights), "")
    if (retire) yield* fs.remove(file(formerRights), { force: true })
    const keysOf = Effect.fnUntraced(function*(identity: Identity) {
      if (retire) yield* fs.remove(file(former(identity)), { force: true })
      // a change that has begun goes on: services may still use what the first go has replaced
      const isChanging = yield* fs.exists(file(former(identity)))
      if (rotate && !isChanging && (yield* fs.exists(file(current(identity))))) {
        yield* fs.rename(file(current(identity)), file(former(identity)))
      }
      if (!(yield* fs.exists(file(current(identity))))) {
        const seed = yield* generate
        yield* fs.writeFileString(file(current(identity)), Redacted.value(seed), { mode: 0o600, flag: "wx" })
      }
      const seeds = [yield* seedIn(current(identity))]
      if (yield* fs.exists(file(former(identity)))) seeds.push(yield* seedIn(former(identity)))
      return [identity, yield* Effect.forEach(seeds, (seed) => publicKeyOf(seed))] as const
    })
    const all: PublicKeys = new Map(yield* Effect.forEach(identities, keysOf))
    const withFormer = yield* fs.exists(file(formerRights))
    yield* fs.writeFileString(file("accounts.conf"), renderAccounts(all, { withFormer }))
    yield* fs.writeFileString(file("kustomization.yaml"), kustomization)
    for (const [{ name }, its] of all) yield* Console.log(`${name}: ${its.join(", ")}`)
  }, failPlainly)
).pipe(Command.withDescription("Make what is missing of the services' keys, and the server's accounts from them"))

export const nats = Command.make("nats").pipe(
  Command.withDescription("The services' identities on NATS"),
  Command.withSubcommands([keys])
)
