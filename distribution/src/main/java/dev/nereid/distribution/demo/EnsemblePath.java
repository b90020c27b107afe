package dev.nereid.distribution.demo;

import inference.ModelConfig;
import inference.ModelEnsembling.Step;
import inference.ModelInput;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Describes the way of a request through an ensemble. Stateless. */
public final class EnsemblePath {
    private EnsemblePath() {}

    /** Returns the names of the steps in the order in which they can be executed, independent ones joined by "and". */
    public static String text(ModelConfig ensemble) {
        Set<String> tensors = new HashSet<>();
        ensemble.getInputList().stream().map(ModelInput::getName).forEach(tensors::add);
        List<Step> open = new ArrayList<>(ensemble.getEnsembleScheduling().getStepList());
        List<String> stages = new ArrayList<>();
        while (!open.isEmpty()) {
            List<Step> ready = open.stream()
                    .filter(step -> tensors.containsAll(step.getInputMapMap().values()))
                    .toList();
            if (ready.isEmpty()) {
                throw new IllegalArgumentException("ensemble '" + ensemble.getName() + "': steps that wait for ever");
            }
            stages.add(
                    String.join(" and ", ready.stream().map(Step::getModelName).toList()));
            ready.forEach(step -> tensors.addAll(step.getOutputMapMap().values()));
            open.removeAll(ready);
        }
        return String.join(", then ", stages);
    }
}
