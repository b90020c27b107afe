package dev.nereid.scheduler.ensemble;

import dev.nereid.api.RequestedOutput;
import java.util.List;

/**
 * One step of an ensemble: its model, and the tensors that it reads and writes. Immutable; arrays are not copied.
 *
 * @param model the name of its model, for errors
 * @param depth the number of decoupled steps before it, on which its inputs depend
 * @param decoupled whether its model sends any number of responses
 * @param tensors the tensors that it reads, each once
 * @param requested the outputs that it requests: in any place, except for outputs of the ensemble's responses
 * @param requestedOnHost the same outputs, all on the host
 * @param readers the indices of the steps that read its outputs
 */
@SuppressWarnings("ArrayRecordComponent") // Never compared.
record StepPlan(
        int index,
        String model,
        int depth,
        boolean decoupled,
        String[] inputs,
        int[] inputTensors,
        int[] tensors,
        String[] outputs,
        int[] outputTensors,
        List<RequestedOutput> requested,
        List<RequestedOutput> requestedOnHost,
        int[] readers) {
    /** Returns the place of an output among the mapped outputs of the step; below 0 if the step does not map it. */
    int outputIndex(String name, int guess) {
        if (guess < outputs.length && outputs[guess].equals(name)) {
            return guess;
        }
        for (int i = 0; i < outputs.length; i++) {
            if (outputs[i].equals(name)) {
                return i;
            }
        }
        return -1;
    }
}
