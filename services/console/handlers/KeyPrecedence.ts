/** Checks the settings that give a key precedence over other teams' keys. No team limit bounds them, so members may not raise them. */
import { defaults, type KeyDefaults } from "../../../shared/keys/KeySettings.ts"

/** Classes from the last to the first in the queue. */
const classes = ["batch", "standard", "interactive"] as const

const ranks = {
  priorityClass: ({ priorityClass = defaults.priorityClass }: KeyDefaults) => classes.indexOf(priorityClass),
  weight: ({ weight = defaults.weight }: KeyDefaults) => weight,
  batchConcurrency: ({ batchConcurrency = defaults.batchConcurrency }: KeyDefaults) => batchConcurrency
}
const fields = ["priorityClass", "weight", "batchConcurrency"] as const

/** The setting that exceeds the team's default for its keys; `undefined` if none does. Settings left out are the team's. */
export const precedenceMistake = (chosen: KeyDefaults, ofTeam: KeyDefaults) => {
  const field = fields.find((field) => chosen[field] !== undefined && ranks[field](chosen) > ranks[field](ofTeam))
  return field === undefined ? undefined : {
    field,
    message: `${field}: must be at most ${ofTeam[field] ?? defaults[field]}, the team's default. Ask an administrator`
  }
}
