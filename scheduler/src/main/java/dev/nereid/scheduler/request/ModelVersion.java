package dev.nereid.scheduler.request;

import static java.util.Objects.requireNonNull;

/**
 * The model version that serves a request. Immutable; one instance for all requests of a version.
 *
 * @param model the model's name
 * @param version the version; never a stand-in for the latest
 */
public record ModelVersion(String model, long version) {
    public ModelVersion {
        requireNonNull(model, "model");
    }
}
