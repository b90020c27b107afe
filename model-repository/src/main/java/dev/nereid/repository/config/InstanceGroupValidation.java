package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import inference.ModelConfig;
import inference.ModelInstanceGroup;
import java.util.List;
import java.util.stream.Collectors;

/** Checks the groups of instances of a configuration. */
final class InstanceGroupValidation {
    private static final String TENSORRT = "tensorrt_plan";

    /** The minimum compute capability of the reference server, as it prints it. */
    private static final String COMPUTE_CAPABILITY = "6.000000";

    /**
     * The maximum number of instances. A greater number is an error of configuration, and would exhaust the memory
     * before any message.
     */
    private static final long MAX_INSTANCES = 4096;

    private InstanceGroupValidation() {}

    static void check(ModelConfig config, List<Integer> gpus) {
        if (config.hasEnsembleScheduling()) {
            return;
        }
        if (config.getInstanceGroupCount() == 0) {
            throw invalid("must specify one or more 'instance group's for " + config.getName());
        }
        for (ModelInstanceGroup group : config.getInstanceGroupList()) {
            String start = "instance group " + group.getName() + " of model " + config.getName();
            checkDevices(group, gpus, start);
            checkProfiles(group, config.getPlatform(), start + " and platform " + config.getPlatform());
        }
        checkNumber(config);
    }

    private static void checkNumber(ModelConfig config) {
        long number = 0;
        for (ModelInstanceGroup group : config.getInstanceGroupList()) {
            number += (long) group.getCount() * Math.max(1, group.getGpusCount());
        }
        if (number > MAX_INSTANCES) {
            throw invalid("the instance groups of model " + config.getName() + " have " + number
                    + " instances (expected: at most " + MAX_INSTANCES + ")");
        }
    }

    private static void checkDevices(ModelInstanceGroup group, List<Integer> gpus, String start) {
        switch (group.getKind()) {
            case KIND_CPU, KIND_MODEL -> {
                if (group.getGpusCount() > 0) {
                    throw invalid(start + " has kind " + group.getKind() + " but specifies one or more GPUs");
                }
            }
            case KIND_GPU -> checkGpus(group, gpus, start);
            case KIND_AUTO, UNRECOGNIZED ->
                throw invalid(
                        start + " has kind " + group.getKindValue() + " (expected: KIND_CPU, KIND_GPU or KIND_MODEL)");
        }
    }

    private static void checkGpus(ModelInstanceGroup group, List<Integer> gpus, String start) {
        if (group.getGpusCount() == 0) {
            throw invalid(start + " has kind KIND_GPU but "
                    + (gpus.isEmpty() ? "no GPUs are available" : "specifies no GPUs"));
        }
        for (int gpu : group.getGpusList()) {
            if (!gpus.contains(gpu)) {
                throw invalid(start + " specifies invalid or unsupported gpu id " + gpu
                        + ". GPUs with at least the minimum required CUDA compute compatibility of "
                        + COMPUTE_CAPABILITY + " are: "
                        + gpus.stream().map(String::valueOf).collect(Collectors.joining(", ")));
            }
        }
    }

    private static void checkProfiles(ModelInstanceGroup group, String platform, String start) {
        if (group.getProfileCount() > 0 && !platform.equals(TENSORRT)) {
            // The reference leaves the blank out, and clients compare whole texts.
            throw invalid(start + "specifies profile field which is only supported for TensorRT models");
        }
        for (String profile : group.getProfileList()) {
            if (!profile.matches("\\d{1,9}")) {
                throw invalid(start + " specifies invalid profile " + profile + ". The field should contain the string"
                        + " representation of a non-negative integer.");
            }
        }
    }
}
