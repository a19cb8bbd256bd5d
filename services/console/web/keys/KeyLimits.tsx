/** The fields of a form for limits, models and precedence, which keys and the defaults of teams for new keys have in common. */
import { NumberInput, SegmentedControl, Stack, Text } from "@mantine/core"
import { Equal, Schema, Struct } from "effect"
import { defaults, type KeyDefaults, KeySettings } from "../../../../shared/keys/KeySettings.ts"
import {
  type InputPropsOf,
  LimitFields,
  LimitInput,
  limitsOf,
  type LimitValues,
  limitValuesOf
} from "../parts/LimitFields.tsx"

/** Values of the inputs. */
export interface KeyLimitValues extends LimitValues {
  readonly batchConcurrency: number | string
  readonly priorityClass: string
  readonly weight: number | string
}

const decodeClass = Schema.decodeUnknownSync(KeySettings.fields.priorityClass)

/** Settings that are left out have their usual values. */
export const keyLimitValuesOf = (settings: KeyDefaults): KeyLimitValues => {
  const { batchConcurrency, priorityClass, weight, ...limited } = { ...defaults, ...settings }
  return { ...limitValuesOf(limited), batchConcurrency, priorityClass, weight }
}

export const keyLimitsOf = (values: KeyLimitValues) => ({
  ...limitsOf(values),
  batchConcurrency: Number(values.batchConcurrency),
  priorityClass: decodeClass(values.priorityClass),
  weight: Number(values.weight)
})

/** A team's defaults for new keys: the settings that differ from the usual values. */
export const keyDefaultsOf = (values: KeyLimitValues): KeyDefaults => {
  const limits = keyLimitsOf(values)
  return Struct.pick(limits, Struct.keys(limits).filter((setting) => !Equal.equals(limits[setting], defaults[setting])))
}

export const KeyLimitFields = ({ inputPropsOf }: { readonly inputPropsOf: InputPropsOf<KeyLimitValues> }) => (
  <Stack gap="md">
    <LimitFields inputPropsOf={inputPropsOf}>
      <LimitInput label="Concurrent batch lines" {...inputPropsOf("batchConcurrency")} />
    </LimitFields>
    <div>
      <Text size="sm" fw={500}>Priority</Text>
      <Text size="xs" c="dimmed" mb={6}>Which requests are served first from a queue</Text>
      <SegmentedControl
        fullWidth
        aria-label="Priority"
        data={[
          { value: "interactive", label: "Interactive" },
          { value: "standard", label: "Standard" },
          { value: "batch", label: "Batch" }
        ]}
        {...inputPropsOf("priorityClass")}
      />
    </div>
    <NumberInput
      label="Weight"
      description="Share of turns among keys of the same priority, 1 to 100"
      min={1}
      max={100}
      clampBehavior="strict"
      allowDecimal={false}
      {...inputPropsOf("weight")}
    />
  </Stack>
)
