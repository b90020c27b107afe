package dev.nereid.spi.function;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import java.lang.System.Logger.Level;
import java.util.Optional;
import java.util.function.Function;

/** The backend around a function, which is opened for each model. Immutable. */
abstract class FunctionBackend<F extends FunctionProvider> implements Backend {
    private final F function;
    private final BackendTraits traits;
    private final boolean isDecoupled;
    private final Function<ModelContext, F> open;

    /**
     * Creates the backend.
     *
     * @param traits the traits beside the kind of execution
     * @param isDecoupled whether the function requires decoupled models
     * @param open opens the function for a model
     */
    FunctionBackend(F function, BackendTraits traits, boolean isDecoupled, Function<ModelContext, F> open) {
        this.function = function;
        this.traits = traits.withExecution(function.execution()).withParallelInstances();
        this.isDecoupled = isDecoupled;
        this.open = open;
    }

    abstract ModelInstance instance(F opened, ModelContext context);

    @Override
    public final BackendTraits traits() {
        return traits;
    }

    @Override
    public final Optional<ModelCompletion> complete(ModelContext context) {
        Optional<ModelCompletion> completed =
                FunctionCompletion.of(function, function.completion(context), context.settings());
        boolean saysNothing = completed.isEmpty()
                && context.settings().inputs().isEmpty()
                && context.settings().outputs().isEmpty();
        return isDecoupled && !saysNothing
                ? Optional.of(completed.orElse(ModelCompletion.EMPTY).withDecoupled(true))
                : completed;
    }

    @Override
    public final Model load(ModelContext context) {
        complete(context); // for its checks, also where the server completes nothing
        checkDecoupled(context);
        F opened = open.apply(context);
        if (opened == null) {
            throw invalid(context, "open returned null (expected: a function)");
        }
        if (isItself(opened) && overridesClose()) {
            throw invalid(
                    context,
                    "close() is never called, since open() returns the function that all models share (expected: an open()"
                            + " that returns a new object for each model)");
        }
        return new FunctionModel(opened, instance(opened, context));
    }

    private void checkDecoupled(ModelContext context) {
        if (context.settings().decoupled() != isDecoupled) {
            throw new BackendException(
                    ErrorCode.UNSUPPORTED,
                    "model '" + context.settings().name() + "': backend '" + function.name() + "' gives "
                            + (isDecoupled
                                    ? "any number of responses to each request (expected: model_transaction_policy {"
                                            + " decoupled: true })"
                                    : "one response to each request, but the model configuration says decoupled"));
        }
    }

    @SuppressWarnings("ReferenceEquality") // another function may be equal to it
    private boolean isItself(F opened) {
        return opened == function;
    }

    private boolean overridesClose() {
        try {
            return !function.getClass().getMethod("close").getDeclaringClass().isInterface();
        } catch (NoSuchMethodException e) {
            throw new AssertionError(e);
        }
    }

    private BackendException invalid(ModelContext context, String what) {
        return new BackendException(
                ErrorCode.INTERNAL,
                "model '" + context.settings().name() + "': backend '" + function.name() + "': " + what);
    }

    /** Returns the error for what the function threw; an unexpected one is logged. */
    final BackendException failure(ModelContext context, Throwable thrown) {
        if (thrown instanceof BackendException expected) {
            return expected;
        }
        context.logger().log(Level.ERROR, "backend failed", thrown);
        return new BackendException(
                ErrorCode.INTERNAL,
                "model '" + context.settings().name() + "': backend '" + function.name() + "' failed: " + thrown,
                thrown);
    }

    /** A model of the function: all instances are one. Immutable. */
    private final class FunctionModel implements Model {
        private final F opened;
        private final ModelInstance instance;

        FunctionModel(F opened, ModelInstance instance) {
            this.opened = opened;
            this.instance = instance;
        }

        @Override
        public ModelInstance newInstance(InstanceContext context) {
            return instance;
        }

        @Override
        public void close() {
            if (!isItself(opened)) {
                opened.close();
            }
        }
    }
}
