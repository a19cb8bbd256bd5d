/** The fields of a form for limits and models, which keys and teams have in common. */
import { NumberInput, type NumberInputProps, SimpleGrid, TagsInput } from "@mantine/core"
import type { UseFormReturnType } from "@mantine/form"
import { Option, Schema } from "effect"
import type { ReactNode } from "react"
import { AllowedModels, type KeySettings } from "../../../../shared/keys/KeySettings.ts"
import { useCatalogue } from "../data/Queries.ts"

type Limited = Pick<
  KeySettings,
  "allowedModels" | "concurrentRequests" | "monthlyBudgetUsd" | "requestsPerMinute" | "tokensPerMinute"
>

/** Values of the inputs. An empty number is an empty string. */
export interface LimitValues {
  readonly requestsPerMinute: number | string
  readonly tokensPerMinute: number | string
  readonly concurrentRequests: number | string
  readonly monthlyBudgetUsd: number | string
  readonly allowedModels: Array<string>
}

const decodeModels = Schema.decodeUnknownOption(AllowedModels)

/** The values for these settings, or for none. */
export const limitValuesOf = (limited: Limited | undefined): LimitValues => ({
  requestsPerMinute: limited?.requestsPerMinute ?? "",
  tokensPerMinute: limited?.tokensPerMinute ?? "",
  concurrentRequests: limited?.concurrentRequests ?? "",
  monthlyBudgetUsd: limited?.monthlyBudgetUsd ?? "",
  allowedModels: limited === undefined || limited.allowedModels.includes("*") ? [] : [...limited.allowedModels]
})

const orNull = (value: number | string): number | null => value === "" ? null : Number(value)

export const limitsOf = (values: LimitValues): Limited => ({
  requestsPerMinute: orNull(values.requestsPerMinute),
  tokensPerMinute: orNull(values.tokensPerMinute),
  concurrentRequests: orNull(values.concurrentRequests),
  monthlyBudgetUsd: orNull(values.monthlyBudgetUsd),
  allowedModels: Option.getOrElse(decodeModels(values.allowedModels), () => ["*"] as const)
})

/** The problem of these models, for the form's `validate`. */
export const problemOfModels = (models: Array<string>): string | null =>
  models.length > 0 && Option.isNone(decodeModels(models)) ? "Use model names, or prefixes followed by *" : null

const limit = { min: 1, allowDecimal: false, thousandSeparator: ",", placeholder: "No limit" } as const

export const LimitInput = (props: NumberInputProps) => <NumberInput {...limit} {...props} />

/** The props of an input by its name; prefixed for values within others. */
export type InputPropsOf<Values> = (
  name: keyof Values & string
) => ReturnType<UseFormReturnType<Values>["getInputProps"]>

/** `children` are further limits. */
export const LimitFields = ({ children, inputPropsOf }: {
  readonly inputPropsOf: InputPropsOf<LimitValues>
  readonly children?: ReactNode
}) => {
  const catalogue = useCatalogue()
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
        <LimitInput label="Requests per minute" {...inputPropsOf("requestsPerMinute")} />
        <LimitInput label="Tokens per minute" {...inputPropsOf("tokensPerMinute")} />
        <LimitInput label="Concurrent requests" {...inputPropsOf("concurrentRequests")} />
        {children}
        <LimitInput
          label="Monthly budget"
          min={0.01}
          allowDecimal
          decimalScale={2}
          prefix="$"
          {...inputPropsOf("monthlyBudgetUsd")}
        />
      </SimpleGrid>
      <TagsInput
        label="Models"
        description="All models if empty. gpt-* matches every name that starts with gpt-"
        data={catalogue.data?.models.map(({ name }) => name) ?? []}
        clearable
        {...inputPropsOf("allowedModels")}
      />
    </>
  )
}
