package dev.nereid.server.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelKey;
import dev.nereid.spi.ErrorCode;

/** Creates the errors of ensembles with unusable steps, with the reference server's texts. Static functions only. */
public final class StepErrors {
    private StepErrors() {}

    /**
     * The model of a step has a wrong configuration, or is an ensemble that does not fit its own steps.
     *
     * @param ensemble the key of the ensemble
     * @param step the key of the model
     * @param reason why it is not valid
     */
    public static InferenceException notValid(String ensemble, String step, String reason) {
        return invalid(
                ensemble, step, "which is not valid. Model '" + ModelKey.name(step) + "' failed with error: " + reason);
    }

    /**
     * No version of the model of a step serves.
     *
     * @param ensemble the key of the ensemble
     * @param step the key of the model
     * @param reason why none does
     */
    public static InferenceException notLoaded(String ensemble, String step, String reason) {
        return invalid(
                ensemble,
                step,
                "which has no loaded version. Model '" + ModelKey.name(step) + "' loading failed with error: "
                        + reason);
    }

    /** The version that a step requires does not serve. */
    static InferenceException versionNotLoaded(String ensemble, String step, long version) {
        return invalid(ensemble, step, "whose required version " + version + " is not loaded.");
    }

    /** The model of a step is to be replaced by one that is decoupled, or is not any more, while the ensemble serves. */
    static InferenceException decoupledChanged(String ensemble, String step, boolean decoupled) {
        return invalid(
                ensemble,
                step,
                "and was loaded while that was " + (decoupled ? "not decoupled" : "decoupled") + "; unload '"
                        + ModelKey.name(step) + "' first, which unloads the ensemble, and load it again");
    }

    private static InferenceException invalid(String ensemble, String step, String problem) {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                "ensemble '" + ModelKey.name(ensemble) + "' depends on '" + ModelKey.name(step) + "' " + problem);
    }
}
