/** Form for the settings of a new or existing team. */
import { Button, Group, NumberInput, Select, SimpleGrid, Stack, TagsInput, Textarea, TextInput } from "@mantine/core"
import { useForm } from "@mantine/form"
import { Equal, Option, Schema, Struct } from "effect"
import { defaults, type TeamChanges, TeamSettings } from "../../../../shared/teams/TeamSettings.ts"
import type { TeamView } from "../../api/Teams.ts"
import { useCatalogue, useTeams } from "../data/Queries.ts"

/** Values of the inputs. An empty number is an empty string. */
interface Values {
  readonly name: string
  readonly parent: string | null
  readonly description: string
  readonly requestsPerMinute: number | string
  readonly tokensPerMinute: number | string
  readonly concurrentRequests: number | string
  readonly monthlyBudgetUsd: number | string
  readonly allowedModels: Array<string>
}

const decodeName = Schema.decodeUnknownOption(TeamSettings.fields.name)
const decodeModels = Schema.decodeUnknownOption(TeamSettings.fields.allowedModels)

const valuesOf = (team: TeamSettings | undefined): Values => ({
  name: team?.name ?? "",
  parent: team?.parent ?? null,
  description: team?.description ?? "",
  requestsPerMinute: team?.requestsPerMinute ?? "",
  tokensPerMinute: team?.tokensPerMinute ?? "",
  concurrentRequests: team?.concurrentRequests ?? "",
  monthlyBudgetUsd: team?.monthlyBudgetUsd ?? "",
  allowedModels: team === undefined || team.allowedModels.includes("*") ? [] : [...team.allowedModels]
})

const orNull = (value: number | string): number | null => value === "" ? null : Number(value)

const settingsOf = (values: Values): Omit<TeamSettings, "keyDefaults"> => ({
  name: values.name.trim(),
  parent: values.parent,
  description: values.description.trim(),
  allowedModels: Option.getOrElse(decodeModels(values.allowedModels), () => ["*"] as const),
  requestsPerMinute: orNull(values.requestsPerMinute),
  tokensPerMinute: orNull(values.tokensPerMinute),
  concurrentRequests: orNull(values.concurrentRequests),
  monthlyBudgetUsd: orNull(values.monthlyBudgetUsd)
})

/** Only the settings changed in the form: another administrator may have changed the others meanwhile. */
export const changesOf = (before: TeamView, after: TeamSettings): TeamChanges => {
  const shown = settingsOf(valuesOf(before))
  return Struct.pick(after, Struct.keys(shown).filter((setting) => !Equal.equals(after[setting], shown[setting])))
}

export const TeamForm = ({ isBusy, onCancel, onSubmit, submit, team }: {
  readonly team?: TeamView
  readonly submit: string
  readonly isBusy: boolean
  readonly onSubmit: (settings: TeamSettings) => void
  readonly onCancel: () => void
}) => {
  const catalogue = useCatalogue()
  const teams = useTeams().data ?? []
  const form = useForm<Values>({
    initialValues: valuesOf(team),
    validate: {
      name: (name) => Option.isNone(decodeName(name.trim())) ? "Enter a name of up to 200 characters" : null,
      allowedModels: (models) =>
        models.length > 0 && Option.isNone(decodeModels(models))
          ? "Use model names, or prefixes followed by *"
          : null
    }
  })
  const limit = { min: 1, allowDecimal: false, thousandSeparator: ",", placeholder: "No limit" } as const
  return (
    <form
      onSubmit={form.onSubmit((values) =>
        onSubmit({ ...settingsOf(values), keyDefaults: team?.keyDefaults ?? defaults.keyDefaults })
      )}
    >
      <Stack gap="md">
        <TextInput label="Name" placeholder="search" required data-autofocus {...form.getInputProps("name")} />
        <Select
          label="Part of"
          description="Limits, budgets and models of all teams above apply, too"
          placeholder="No other team"
          clearable
          searchable
          data={teams.filter(({ id }) => id !== team?.id).map(({ id, name }) => ({ value: id, label: name }))}
          {...form.getInputProps("parent")}
        />
        <Textarea label="Description" autosize minRows={1} maxLength={1_000} {...form.getInputProps("description")} />
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
          <NumberInput label="Requests per minute" {...limit} {...form.getInputProps("requestsPerMinute")} />
          <NumberInput label="Tokens per minute" {...limit} {...form.getInputProps("tokensPerMinute")} />
          <NumberInput label="Concurrent requests" {...limit} {...form.getInputProps("concurrentRequests")} />
          <NumberInput
            label="Monthly budget"
            {...limit}
            min={0.01}
            allowDecimal
            decimalScale={2}
            prefix="$"
            {...form.getInputProps("monthlyBudgetUsd")}
          />
        </SimpleGrid>
        <TagsInput
          label="Models"
          description="All models if empty. gpt-* matches every name that starts with gpt-"
          data={catalogue.data?.models.map(({ name }) => name) ?? []}
          clearable
          {...form.getInputProps("allowedModels")}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>Cancel</Button>
          <Button type="submit" loading={isBusy}>{submit}</Button>
        </Group>
      </Stack>
    </form>
  )
}
