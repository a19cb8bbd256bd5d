/** Form for the settings of a new or existing team. */
import { Accordion, Button, Group, Select, Stack, Text, Textarea, TextInput } from "@mantine/core"
import { useForm } from "@mantine/form"
import { Equal, Option, Schema, Struct } from "effect"
import { type TeamChanges, TeamSettings } from "../../../../shared/teams/TeamSettings.ts"
import type { TeamView } from "../../api/Teams.ts"
import { useTeams } from "../data/Queries.ts"
import { keyDefaultsOf, KeyLimitFields, type KeyLimitValues, keyLimitValuesOf } from "../keys/KeyLimits.tsx"
import { LimitFields, limitsOf, type LimitValues, limitValuesOf, problemOfModels } from "../parts/LimitFields.tsx"

/** Values of the inputs. */
interface Values extends LimitValues {
  readonly name: string
  /** `null` for none. */
  readonly parent: string | null
  readonly description: string
  readonly keyDefaults: KeyLimitValues
}

const decodeName = Schema.decodeUnknownOption(TeamSettings.fields.name)

const valuesOf = (team: TeamSettings | undefined): Values => ({
  name: team?.name ?? "",
  parent: team?.parent ?? null,
  description: team?.description ?? "",
  ...limitValuesOf(team),
  keyDefaults: keyLimitValuesOf(team?.keyDefaults ?? {})
})

const settingsOf = (values: Values): TeamSettings => ({
  name: values.name.trim(),
  parent: values.parent,
  description: values.description.trim(),
  ...limitsOf(values),
  keyDefaults: keyDefaultsOf(values.keyDefaults)
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
  const teams = useTeams().data ?? []
  const form = useForm<Values>({
    initialValues: valuesOf(team),
    validate: {
      name: (name) => Option.isNone(decodeName(name.trim())) ? "Enter a name of up to 200 characters" : null,
      allowedModels: problemOfModels,
      keyDefaults: { allowedModels: problemOfModels }
    }
  })
  return (
    <form
      onSubmit={form.onSubmit((values) => onSubmit(settingsOf(values)))}
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
        <LimitFields inputPropsOf={form.getInputProps} />
        <Accordion variant="separated" keepMounted={false}>
          <Accordion.Item value="defaults">
            <Accordion.Control>
              <Text fw={600} size="sm">Defaults for new keys</Text>
              <Text size="xs" c="dimmed">
                Existing keys keep their settings. Members may not give a key more precedence
              </Text>
            </Accordion.Control>
            <Accordion.Panel>
              <KeyLimitFields inputPropsOf={(name) => form.getInputProps(`keyDefaults.${name}`)} />
            </Accordion.Panel>
          </Accordion.Item>
        </Accordion>
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>Cancel</Button>
          <Button type="submit" loading={isBusy}>{submit}</Button>
        </Group>
      </Stack>
    </form>
  )
}
