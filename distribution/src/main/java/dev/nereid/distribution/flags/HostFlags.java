package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.StartException;
import dev.nereid.server.host.HostPolicies;
import dev.nereid.server.host.HostSetting;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Flags of host policies and of parallel instance loading. Written by the command line reader, then only read. */
final class HostFlags {
    /** An environment variable without a flag, as in the reference server. */
    static final String PARALLEL = "TRITON_PARALLEL_INSTANCE_LOADING";

    /** The settings of all policies, in the order of the command line. */
    final List<HostSetting> settings = new ArrayList<>();

    void declare(Flags flags) {
        flags.add("--host-policy", FlagValue.HOST_SETTING, settings::add)
                .help("The processors that threads of instances run on, as in cpu,cpu-cores=0-3,8 or"
                        + " gpu_0,numa-node=1. Policies are cpu, gpu_0 and so on, model, and those that an"
                        + " instance_group names. May be given several times. Default: any processor.");
    }

    /** Returns the policies, or throws if one names processors or nodes that the machine does not have. */
    HostPolicies policies() throws StartException {
        try {
            return settings.isEmpty() ? HostPolicies.NONE : HostPolicies.of(settings);
        } catch (IllegalArgumentException e) {
            throw new StartException("--host-policy: " + e.getMessage(), e);
        }
    }

    /** Returns whether instances of a model are created in parallel; if so, whatever the backend declares. */
    static boolean parallel(Map<String, String> environment) throws StartException {
        String value = environment.getOrDefault(PARALLEL, "");
        if (value.isEmpty()) {
            return false;
        }
        return FlagValue.TRUTH
                .reader()
                .apply(value)
                .orElseThrow(() -> new StartException(
                        PARALLEL + ": '" + value + "' (expected: " + FlagValue.TRUTH.expected() + ")"));
    }
}
