package dev.nereid.scheduler.request;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.admission.InFlightRequests;
import dev.nereid.scheduler.admission.ModelAdmission;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.spi.ModelSettings;
import java.time.InstantSource;
import java.util.function.LongSupplier;

/**
 * Holds what all requests of one model version share. Immutable but for its counters.
 *
 * @param settings the model's configuration
 * @param memory the memory for copied and gathered inputs and for outputs
 * @param nanoTime the clock
 * @param fatalErrors handles errors after which the process may not be able to serve
 * @param counters the counters of requests
 * @param admission the load of the model and its limits
 * @param detached the requests that neither wait nor run on an instance
 */
public record ModelScope(
        ModelSettings settings,
        TensorMemory memory,
        LongSupplier nanoTime,
        FatalErrorHandler fatalErrors,
        Counters counters,
        ModelAdmission admission,
        DetachedRequests detached) {
    /**
     * Holds the counters of requests.
     *
     * @param meter the statistics
     * @param inFlight the number of requests in flight
     */
    record Counters(ModelMeter meter, InFlightRequests inFlight) {}

    /** Creates a scope without requests. */
    public ModelScope(
            ModelSettings settings,
            TensorMemory memory,
            LongSupplier nanoTime,
            FatalErrorHandler fatalErrors,
            ModelMeter meter,
            ModelAdmission load) {
        this(
                settings,
                memory,
                nanoTime,
                fatalErrors,
                new Counters(meter, new InFlightRequests()),
                load,
                new DetachedRequests());
    }

    /** Returns the statistics. */
    public ModelMeter meter() {
        return counters.meter();
    }

    /** Returns the number of requests in flight. */
    public InFlightRequests inFlight() {
        return counters.inFlight();
    }

    /**
     * Returns the same scope for requests that the statistics do not count. The statistics are those of the model.
     *
     * @param requests counts the uncounted requests in flight
     */
    public ModelScope uncounted(InFlightRequests requests) {
        Counters apart = new Counters(new ModelMeter(InstantSource.system()), requests);
        return new ModelScope(settings, memory, nanoTime, fatalErrors, apart, admission, detached);
    }
}
