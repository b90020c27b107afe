package dev.nereid.scheduler.request;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.Refusals;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.admission.RequestAdmission;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import java.time.InstantSource;
import java.util.function.LongSupplier;

/**
 * Holds the data that all requests of one model version share. Immutable except for its counters.
 *
 * @param settings the model's configuration
 * @param memory the memory for copied and gathered inputs and for outputs
 * @param fatalErrors handles errors after which the process may not be able to serve
 * @param drain the requests in flight; a stop waits for their end
 * @param admission the load of the model and its limits
 * @param detached the requests that do not wait and do not run on an instance
 * @param refusals counts the requests that are refused for a mistake of their client
 */
public record ModelScope(
        ModelSettings settings,
        TensorMemory memory,
        LongSupplier nanoTime,
        FatalErrorHandler fatalErrors,
        ModelMeter meter,
        RequestDrain drain,
        RequestAdmission admission,
        DetachedRequests detached,
        Refusals refusals) {
    public ModelScope(
            ModelSettings settings,
            TensorMemory memory,
            LongSupplier nanoTime,
            FatalErrorHandler fatalErrors,
            ModelMeter meter,
            RequestAdmission admission,
            Refusals refusals) {
        this(
                settings,
                memory,
                nanoTime,
                fatalErrors,
                meter,
                new RequestDrain(),
                admission,
                new DetachedRequests(),
                refusals);
    }

    /** Creates the count of requests that use an instance. The statistics count executions on each GPU. */
    public RequestDrain drainOf(String instance, Device device) {
        if (device.kind() == Device.Kind.GPU) {
            meter.addInstanceOn(device.id());
        }
        return new RequestDrain(instance, device);
    }

    /** Returns the object that identifies this scope, and no other one, as the source of responses. */
    public Object source() {
        return drain;
    }

    /** Returns the same scope, with the statistics of the model, for requests that the statistics do not count. */
    public ModelScope uncounted(RequestDrain own) {
        ModelMeter unread = new ModelMeter(InstantSource.system());
        return new ModelScope(settings, memory, nanoTime, fatalErrors, unread, own, admission, detached, refusals);
    }
}
