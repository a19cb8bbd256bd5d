/** A catalogue from LiteLLM's `config.yaml`, with a report of what it does not carry over. */
import { Effect } from "effect"
import { stringify } from "yaml"
import * as Catalogue from "../../../shared/catalogue/Catalogue.ts"
import { adviceFor } from "./Advice.ts"
import * as Config from "./Config.ts"
import { Credentials } from "./Credentials.ts"
import { Findings } from "./Findings.ts"
import { importModels } from "./Models.ts"
import { Targets } from "./Targets.ts"

export interface ImportedCatalogue {
  /** The catalogue's YAML. */
  readonly text: string
  readonly models: ReadonlyMap<string, unknown>
  /** The models of each access group, which keys may name. */
  readonly accessGroups: ReadonlyMap<string, ReadonlyArray<string>>
  /** The variables that workers need. */
  readonly variables: ReadonlyArray<string>
  /** Models without a price, which budgets do not count. */
  readonly unpriced: ReadonlyArray<string>
  readonly findings: Findings
  readonly report: ReadonlyArray<string>
}

const strategies = ["simple-shuffle"]

/** Findings about settings of the whole gateway. */
const checkSettings = ({ config }: Config.ReadConfig, findings: Findings): void => {
  const {
    credential_list = [],
    environment_variables = {},
    litellm_settings = {},
    model_list = [],
    router_settings = {}
  } = config
  const { routing_strategy } = router_settings
  if (routing_strategy !== undefined) {
    findings.add(
      ["router_settings", "routing_strategy"],
      strategies.includes(routing_strategy)
        ? "not needed: targets are always drawn by weight"
        : "no counterpart: targets are drawn by weight; sessions keep to one, and its limits, queue and circuit send them on"
    )
  }
  for (const name of ["request_timeout", "num_retries"] as const) {
    const by = name === "request_timeout" ? "timeout" : name
    if (litellm_settings[name] !== undefined && router_settings[by] !== undefined) {
      findings.add(["litellm_settings", name], `no effect: router_settings.${by} applies`)
    }
  }
  for (const section of ["router_settings", "litellm_settings"] as const) {
    if ((config[section]?.num_retries ?? 0) > 5) {
      findings.add([section, "num_retries"], "imported as 5, the most that there are")
    }
  }
  for (const [index, { litellm_params: { max_retries = 0, num_retries } }] of model_list.entries()) {
    if ((num_retries ?? max_retries) <= 5) continue
    const field = num_retries === undefined ? "max_retries" : "num_retries"
    findings.add(["model_list", index, "litellm_params", field], "imported as 5, the most that there are")
  }
  for (const name of Object.keys(environment_variables)) {
    findings.add(["environment_variables", name], "not imported: set it for the processes that need it")
  }
  for (const [index, { credential_name }] of credential_list.entries()) {
    if (model_list.some(({ litellm_params }) => litellm_params.litellm_credential_name === credential_name)) continue
    findings.add(["credential_list", index], "not imported: no deployment names it")
  }
  for (const [index, { model_info }] of model_list.entries()) {
    if (model_info?.access_groups === undefined) continue
    findings.add(
      ["model_list", index, "model_info", "access_groups"],
      "keys that name the group get its models, those of today"
    )
  }
}

const accessGroupsIn = ({ model_list = [] }: Config.Config): ReadonlyMap<string, ReadonlyArray<string>> => {
  const groups = new Map<string, Array<string>>()
  for (const { model_info, model_name } of model_list) {
    for (const group of model_info?.access_groups ?? []) {
      groups.set(group, [...new Set([...groups.get(group) ?? [], model_name])])
    }
  }
  return groups
}

const header = `# Imported from LiteLLM. Check it by \`npm run config -- check\`.\n`

/** `environment` gives the variables that `os.environ/` refers to. */
export const importCatalogue = Effect.fn("importCatalogue")(function*(
  file: string,
  text: string,
  environment: (name: string) => string | undefined
) {
  const read = yield* Config.parse(file, text)
  const { config, lineOf, raw } = read
  const findings = new Findings()
  const credentials = new Credentials(config, environment, findings)
  const targets = new Targets(config, credentials, findings)
  const imported = (config.model_list ?? []).flatMap((deployment, index) => targets.import(deployment, index) ?? [])
  const models = importModels(config, imported, findings)
  checkSettings(read, findings)
  for (const path of Config.unknownIn(raw, config)) {
    const [section, index] = path
    if (section === "model_list" && targets.skipped.has(Number(index))) continue
    findings.add(path, adviceFor(path))
  }
  const catalogue = { providers: Object.fromEntries(targets.providers), models: Object.fromEntries(models) }
  const yaml = header + stringify(catalogue, { aliasDuplicateObjects: false, lineWidth: 0 })
  // finds mistakes of the import now, not when the gateway first starts
  yield* Catalogue.parse("the imported catalogue", yaml)
  const imports: ImportedCatalogue = {
    text: yaml,
    models,
    accessGroups: accessGroupsIn(config),
    variables: credentials.variables,
    unpriced: [...models].filter(([, { price, targets }]) =>
      price === undefined && targets.some((target) => target.price === undefined)
    ).map(([name]) => name),
    findings,
    report: findings.format(file, lineOf)
  }
  return imports
})
