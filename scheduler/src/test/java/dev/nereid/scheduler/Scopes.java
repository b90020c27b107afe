package dev.nereid.scheduler;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.Refusals;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.admission.AdmissionCounts;
import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.scheduler.admission.RequestAdmission;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.spi.ModelSettings;
import java.time.InstantSource;
import java.util.function.LongSupplier;

/** Makes scopes without load limits for tests. Static functions only. */
public final class Scopes {
    private Scopes() {}

    public static ModelScope of(ModelSettings settings, TensorMemory memory, LongSupplier nanoTime) {
        return of(settings, memory, nanoTime, Refusals.NONE);
    }

    public static ModelScope of(ModelSettings settings, TensorMemory memory, LongSupplier nanoTime, Refusals refusals) {
        return new ModelScope(
                settings,
                memory,
                nanoTime,
                FatalErrorHandler.NONE,
                new ModelMeter(InstantSource.system()),
                new RequestAdmission(new AdmissionCounts(AdmissionLimits.NONE), AdmissionLimits.NONE),
                refusals);
    }
}
