package dev.nereid.server.ensemble;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ErrorCode;
import inference.DataType;
import inference.ModelConfig;
import inference.ModelEnsembling;
import inference.ModelInput;
import inference.ModelOutput;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * Checks an ensemble against the models of its steps. Its errors have the texts of the reference server. Confined to
 * one check.
 */
final class StepValidation {
    private final ModelConfig ensemble;
    private final Map<String, StepTensor> tensors = new HashMap<>();

    /** The numbers of the decoupled steps on which each tensor depends, in their order. */
    private final Map<String, List<Integer>> labels = new HashMap<>();

    private StepValidation(ModelConfig ensemble) {
        this.ensemble = ensemble;
    }

    /**
     * Checks an ensemble.
     *
     * @param ensemble its configuration, which was checked without the models of its steps
     * @return the configuration, which says whether the ensemble is decoupled
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if a step does not fit
     */
    static ModelConfig check(ModelConfig ensemble, List<ModelConfig> steps) {
        StepValidation validation = new StepValidation(ensemble);
        validation.addEnsemble();
        List<ModelEnsembling.Step> mapped = ensemble.getEnsembleScheduling().getStepList();
        for (int i = 0; i < steps.size(); i++) {
            validation.checkBatchSize(mapped.get(i), steps.get(i));
            validation.checkInputs(mapped.get(i), steps.get(i));
            validation.checkOutputs(mapped.get(i), steps.get(i));
        }
        boolean decoupled = validation.findLabels(mapped, steps);
        ModelConfig.Builder checked = ensemble.toBuilder();
        checked.getModelTransactionPolicyBuilder().setDecoupled(decoupled);
        return checked.build();
    }

    private void addEnsemble() {
        boolean batches = ensemble.getMaxBatchSize() > 0;
        for (ModelInput input : ensemble.getInputList()) {
            List<Long> dims = input.hasReshape() ? input.getReshape().getShapeList() : input.getDimsList();
            tensors.put(input.getName(), new StepTensor(ensemble.getName(), input.getDataType(), dims, batches));
            labels.put(input.getName(), List.of());
        }
        for (ModelOutput output : ensemble.getOutputList()) {
            List<Long> dims = output.hasReshape() ? output.getReshape().getShapeList() : output.getDimsList();
            tensors.putIfAbsent(
                    output.getName(), new StepTensor(ensemble.getName(), output.getDataType(), dims, batches));
        }
    }

    private void checkBatchSize(ModelEnsembling.Step step, ModelConfig model) {
        if (model.getMaxBatchSize() != 0 && model.getMaxBatchSize() < ensemble.getMaxBatchSize()) {
            throw invalid("ensemble " + ensemble.getName() + " allows maximum batch size "
                    + ensemble.getMaxBatchSize() + ", but it contains model " + step.getModelName()
                    + " which only allows maximum batch size to be " + model.getMaxBatchSize());
        }
    }

    private void checkInputs(ModelEnsembling.Step step, ModelConfig model) {
        new TreeMap<>(step.getInputMapMap()).forEach((input, tensor) -> {
            if (model.getInputList().stream()
                    .noneMatch(declared -> declared.getName().equals(input))) {
                throw invalid(inEnsemble() + "ensemble tensor " + tensor + " is mapping to non-existing input " + input
                        + " in model " + step.getModelName());
            }
        });
        for (ModelInput input : model.getInputList()) {
            String tensor = step.getInputMapMap().get(input.getName());
            if (tensor != null) {
                add(tensor, step(step, model, input.getDataType(), input.getDimsList()));
            } else if (!input.getOptional()) {
                throw invalid(inEnsemble() + "input " + input.getName() + " in model " + step.getModelName()
                        + " is not mapped to any ensemble tensors");
            }
        }
    }

    private void checkOutputs(ModelEnsembling.Step step, ModelConfig model) {
        Map<String, ModelOutput> outputs = new HashMap<>();
        model.getOutputList().forEach(output -> outputs.put(output.getName(), output));
        Map<String, String> mapped = new TreeMap<>(step.getOutputMapMap());
        mapped.forEach((output, tensor) -> {
            if (!outputs.containsKey(output)) {
                throw invalid(inEnsemble() + "ensemble tensor " + tensor + " is mapped from non-existing output "
                        + output + " in model " + step.getModelName());
            }
        });
        mapped.forEach((name, tensor) -> {
            if (model.getOutputList().stream()
                            .filter(declared -> declared.getName().equals(name))
                            .count()
                    > 1) {
                throw invalid(inEnsemble() + "multiple outputs in model " + step.getModelName()
                        + " are mapped to the same ensemble tensor " + tensor);
            }
            ModelOutput output = requireNonNull(outputs.get(name));
            add(tensor, step(step, model, output.getDataType(), output.getDimsList()));
        });
    }

    private static StepTensor step(
            ModelEnsembling.Step step, ModelConfig model, inference.DataType type, List<Long> dims) {
        return new StepTensor(step.getModelName(), type, dims, model.getMaxBatchSize() > 0);
    }

    private void add(String tensor, StepTensor added) {
        StepTensor known = tensors.putIfAbsent(tensor, added);
        if (known != null) {
            known.check(added, inEnsemble() + "ensemble tensor " + tensor + ": ");
        }
    }

    /** Finds the decoupled steps before each tensor; returns whether there is any. Each round finds one step at least. */
    private boolean findLabels(List<ModelEnsembling.Step> steps, List<ModelConfig> models) {
        boolean[] found = new boolean[steps.size()];
        boolean isDecoupled = false;
        boolean hasChanged = true;
        while (hasChanged) {
            hasChanged = false;
            for (int i = 0; i < found.length; i++) {
                ModelEnsembling.Step step = steps.get(i);
                if (!found[i]
                        && labels.keySet().containsAll(step.getInputMapMap().values())) {
                    boolean decoupled =
                            models.get(i).getModelTransactionPolicy().getDecoupled();
                    label(step, i, decoupled);
                    isDecoupled |= decoupled;
                    found[i] = true;
                    hasChanged = true;
                }
            }
        }
        join(ensemble.getOutputList().stream().map(ModelOutput::getName).toList(), ensemble.getName());
        return isDecoupled;
    }

    private void label(ModelEnsembling.Step step, int index, boolean decoupled) {
        List<Integer> label =
                new ArrayList<>(join(List.copyOf(new TreeMap<>(step.getInputMapMap()).values()), step.getModelName()));
        if (decoupled) {
            label.add(index);
        }
        step.getOutputMapMap().values().forEach(tensor -> labels.put(tensor, List.copyOf(label)));
    }

    /** Returns the longest of the labels of tensors, of which the others are beginnings. */
    private List<Integer> join(List<String> joined, String model) {
        List<Integer> longest = List.of();
        for (String tensor : joined) {
            List<Integer> label = labels.getOrDefault(tensor, List.of());
            int common = Math.min(label.size(), longest.size());
            if (!label.subList(0, common).equals(longest.subList(0, common))) {
                throw invalid(inEnsemble() + "step of model '" + model
                        + "' receives inputs originated from different decoupled models");
            }
            longest = label.size() > longest.size() ? label : longest;
        }
        return longest;
    }

    private String inEnsemble() {
        return "in ensemble " + ensemble.getName() + ", ";
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }

    /**
     * A tensor of an ensemble as one model has it. Immutable.
     *
     * @param dims its dimensions without batch dimension
     */
    private record StepTensor(String model, DataType type, List<Long> dims, boolean batches) {
        /**
         * Checks that two models mean the same tensor. Shapes fit without batch dimension or with it, so that a model with
         * batch dimension and one without can be connected.
         *
         * @param place the beginning of the error
         */
        void check(StepTensor other, String place) {
            if (type != other.type) {
                throw invalid(place + "inconsistent data type: " + type.name() + inferred(other, other.type.name()));
            }
            if (!fits(dims, other.dims) && !fits(fullDims(), other.fullDims())) {
                throw invalid(
                        place + "inconsistent shape: " + text(fullDims()) + inferred(other, text(other.fullDims())));
            }
        }

        private String inferred(StepTensor other, String value) {
            return " is inferred from model " + model + " while " + value + " is inferred from model " + other.model;
        }

        private static InferenceException invalid(String text) {
            return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
        }

        private List<Long> fullDims() {
            return batches ? Stream.concat(Stream.of(-1L), dims.stream()).toList() : dims;
        }

        private static String text(List<Long> dims) {
            return Quoted.dims(dims.stream().mapToLong(Long::longValue).toArray());
        }

        private static boolean fits(List<Long> first, List<Long> second) {
            return first.size() == second.size()
                    && LongStream.range(0, first.size()).allMatch(i -> fits(first.get((int) i), second.get((int) i)));
        }

        private static boolean fits(long first, long second) {
            return first == second || first == -1 || second == -1;
        }
    }
}
