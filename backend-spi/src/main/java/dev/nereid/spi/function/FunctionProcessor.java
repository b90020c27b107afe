package dev.nereid.spi.function;

import dev.nereid.spi.BackendProvider;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.annotation.Annotation;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import javax.annotation.processing.AbstractProcessor;
import javax.annotation.processing.Filer;
import javax.annotation.processing.RoundEnvironment;
import javax.lang.model.SourceVersion;
import javax.lang.model.element.Element;
import javax.lang.model.element.TypeElement;
import javax.lang.model.util.ElementFilter;
import javax.tools.Diagnostic;
import javax.tools.StandardLocation;

/**
 * Checks classes with {@link BackendFunction} and names them in the service file. <em>Used by compilers.</em>
 *
 * <p>The compiler finds it in the jar of the SPI, if annotation processing is switched on: {@code javac -proc:full}, or
 * {@code -processorpath}; in Maven {@code <proc>full</proc>} or {@code annotationProcessorPaths}. Without an option javac
 * runs no processor. It writes {@code META-INF/services/dev.nereid.spi.BackendProvider} beside the classes: what such a file
 * contains already stays, and classes that were compiled before stay as long as they have the annotation. Confined to the
 * compiler's thread.
 *
 * @since 1.0
 */
public final class FunctionProcessor extends AbstractProcessor {
    private static final String SERVICE_FILE = "META-INF/services/" + BackendProvider.class.getName();

    private static final Set<Class<? extends Annotation>> ANNOTATIONS =
            Set.of(BackendFunction.class, Input.class, Input.List.class, Output.class, Output.List.class);

    private final NavigableSet<String> compiled = new TreeSet<>();
    private final Map<String, String> names = new HashMap<>();
    private boolean failed;

    /** Creates a processor for one compilation. */
    public FunctionProcessor() {}

    /**
     * Returns all annotations. A class that has lost its own is taken out of the service file as well.
     *
     * @return {@code *}
     */
    @Override
    public Set<String> getSupportedAnnotationTypes() {
        return Set.of("*");
    }

    /**
     * Returns the newest version, since no syntax matters here.
     *
     * @return the version of the compiler
     */
    @Override
    public SourceVersion getSupportedSourceVersion() {
        return SourceVersion.latestSupported();
    }

    /**
     * Checks the classes of one round; the last one writes the service file.
     *
     * @param annotations not used
     * @param round the classes
     * @return {@code false}: other processors may read the annotations too
     */
    @Override
    public boolean process(Set<? extends TypeElement> annotations, RoundEnvironment round) {
        Set<? extends Element> annotated = round.getElementsAnnotatedWithAny(ANNOTATIONS);
        for (Element element : annotated) {
            if (element instanceof TypeElement type) {
                add(new FunctionElement(type, processingEnv.getElementUtils(), processingEnv.getTypeUtils()));
            }
        }
        warnOfNameless(round.getRootElements(), annotated);
        if (round.processingOver() && !failed && !round.errorRaised()) {
            write();
        }
        return false;
    }

    private void warnOfNameless(Set<? extends Element> types, Set<? extends Element> annotated) {
        for (TypeElement type : ElementFilter.typesIn(types)) {
            FunctionElement function =
                    new FunctionElement(type, processingEnv.getElementUtils(), processingEnv.getTypeUtils());
            if (!annotated.contains(type) && function.isNameless()) {
                processingEnv
                        .getMessager()
                        .printMessage(
                                Diagnostic.Kind.WARNING,
                                "class " + function.className() + ": annotation @BackendFunction: missing (expected:"
                                        + " @BackendFunction(name = \"…\"), or a method name(); a class that is not public"
                                        + " if another function opens it)",
                                type);
            }
            warnOfNameless(Set.copyOf(type.getEnclosedElements()), annotated);
        }
    }

    private void add(FunctionElement function) {
        List<FunctionDeclaration.Problem> problems = new ArrayList<>(function.problems());
        function.backendName().ifPresent(name -> checkUnique(problems, name, function.className()));
        for (FunctionDeclaration.Problem problem : problems) {
            failed = true;
            processingEnv
                    .getMessager()
                    .printMessage(
                            Diagnostic.Kind.ERROR,
                            "class " + function.className() + ": " + problem.message(),
                            function.type(),
                            function.annotation(problem));
        }
        compiled.add(function.className());
    }

    private void checkUnique(List<FunctionDeclaration.Problem> problems, String name, String className) {
        String other = names.putIfAbsent(name, className);
        if (other != null && !other.equals(className)) {
            problems.add(new FunctionDeclaration.Problem(
                    BackendFunction.class,
                    0,
                    "annotation @BackendFunction: name: \"" + name + "\" is that of class " + other
                            + " (expected: a name of its own)"));
        }
    }

    private void write() {
        Filer filer = processingEnv.getFiler();
        String before = read(filer);
        ServiceFile file = ServiceFile.parse(before).with(compiled, this::isFunction);
        if (file.text().equals(before)) {
            return;
        }
        try (OutputStream out = filer.createResource(StandardLocation.CLASS_OUTPUT, "", SERVICE_FILE)
                .openOutputStream()) {
            out.write(file.text().getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            processingEnv
                    .getMessager()
                    .printMessage(Diagnostic.Kind.ERROR, SERVICE_FILE + ": cannot be written: " + e.getMessage());
        }
    }

    private static String read(Filer filer) {
        try (InputStream in = filer.getResource(StandardLocation.CLASS_OUTPUT, "", SERVICE_FILE)
                .openInputStream()) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            return ""; // there is none: compilers differ in the exception
        }
    }

    /** Returns whether a class of an earlier compilation is still a function. */
    private boolean isFunction(String className) {
        TypeElement type = processingEnv.getElementUtils().getTypeElement(className.replace('$', '.'));
        return type != null && type.getAnnotation(BackendFunction.class) != null;
    }

    /**
     * Claims the annotations of functions. <em>Used by compilers.</em>
     *
     * <p>The compiler warns of annotations that no processor claims ({@code -Xlint:processing}), and the other processor
     * reads all annotations, so that it must not claim them. Runs after it. Stateless.
     *
     * @since 1.0
     */
    public static final class Claim extends AbstractProcessor {
        /** Creates a processor for one compilation. */
        public Claim() {}

        /**
         * Returns the annotations of functions.
         *
         * @return their names
         */
        @Override
        public Set<String> getSupportedAnnotationTypes() {
            return ANNOTATIONS.stream().map(Class::getCanonicalName).collect(Collectors.toUnmodifiableSet());
        }

        /**
         * Returns the newest version, since no syntax matters here.
         *
         * @return the version of the compiler
         */
        @Override
        public SourceVersion getSupportedSourceVersion() {
            return SourceVersion.latestSupported();
        }

        /**
         * Claims the annotations.
         *
         * @param annotations not used
         * @param round not used
         * @return {@code true}
         */
        @Override
        @SuppressWarnings(
                "DoNotClaimAnnotations") // which is what this processor is for: no other one reads them after it
        public boolean process(Set<? extends TypeElement> annotations, RoundEnvironment round) {
            return true;
        }
    }
}
