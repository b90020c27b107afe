package dev.nereid.spi.function;

import java.lang.annotation.AnnotationTypeMismatchException;
import java.lang.annotation.IncompleteAnnotationException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import javax.lang.model.element.AnnotationMirror;
import javax.lang.model.element.AnnotationValue;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.TypeElement;
import javax.lang.model.type.DeclaredType;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;
import javax.lang.model.util.ElementFilter;
import javax.lang.model.util.Elements;
import javax.lang.model.util.Types;
import org.jspecify.annotations.Nullable;

/** A class in source form that has annotations of a function. Confined to the compilation. */
final class FunctionElement {
    private final TypeElement type;
    private final Elements elements;
    private final Types types;

    FunctionElement(TypeElement type, Elements elements, Types types) {
        this.type = type;
        this.elements = elements;
        this.types = types;
    }

    /** Returns the class. */
    TypeElement type() {
        return type;
    }

    /** Returns the name of the class as class loaders know it. */
    String className() {
        return elements.getBinaryName(type).toString();
    }

    /** Returns the name of the backend; empty without one. */
    Optional<String> backendName() {
        try {
            return Optional.ofNullable(type.getAnnotation(BackendFunction.class))
                    .map(BackendFunction::name);
        } catch (AnnotationTypeMismatchException | IncompleteAnnotationException e) {
            return Optional.empty(); // the compiler reports it
        }
    }

    /** Returns the annotation that a problem is about, or {@code null} if it is missing. */
    @Nullable
    AnnotationMirror annotation(FunctionDeclaration.Problem problem) {
        for (AnnotationMirror mirror : type.getAnnotationMirrors()) {
            String name = mirror.getAnnotationType().toString();
            if (name.equals(problem.annotation().getCanonicalName())) {
                return mirror;
            }
            if (name.equals(problem.annotation().getCanonicalName() + ".List")) {
                return repeated(mirror).get(problem.index());
            }
        }
        return null;
    }

    /** Returns the annotations in the container that the compiler makes of several. */
    private static List<AnnotationMirror> repeated(AnnotationMirror container) {
        List<AnnotationMirror> all = new ArrayList<>();
        for (AnnotationValue value : container.getElementValues().values()) {
            if (value.getValue() instanceof List<?> list) {
                for (Object element : list) {
                    all.add((AnnotationMirror) ((AnnotationValue) element).getValue());
                }
            }
        }
        return all;
    }

    /** Returns the mistakes; empty if the server can use the class. */
    List<FunctionDeclaration.Problem> problems() {
        BackendFunction function = type.getAnnotation(BackendFunction.class);
        if (function == null) {
            return List.of(problem("missing beside @Input or @Output (expected: @BackendFunction(name = \"…\"))"));
        }
        List<FunctionDeclaration.Problem> problems = problemsOfClass();
        try {
            FunctionDeclaration declaration = new FunctionDeclaration(
                    function,
                    List.of(type.getAnnotationsByType(Input.class)),
                    List.of(type.getAnnotationsByType(Output.class)));
            if (problems.isEmpty()) {
                checkOverrides(problems, declaration);
            }
            problems.addAll(declaration.problems());
        } catch (AnnotationTypeMismatchException | IncompleteAnnotationException | EnumConstantNotPresentException e) {
            return problems; // the compiler reports it
        }
        return problems;
    }

    /**
     * Returns whether the class is a function without a name. The server could create it; so it lacks its annotation, or
     * another function opens it.
     */
    boolean isNameless() {
        return (type.getKind() == ElementKind.CLASS || type.getKind() == ElementKind.RECORD)
                && isA(FunctionProvider.class)
                && type.getAnnotation(BackendFunction.class) == null
                && !hasName()
                && problemsOfClass().isEmpty();
    }

    /** Returns whether the class has a method for its name, which it may inherit. */
    private boolean hasName() {
        return ElementFilter.methodsIn(elements.getAllMembers(type)).stream()
                .filter(method -> method.getSimpleName().contentEquals("name")
                        && method.getParameters().isEmpty())
                .map(method -> (TypeElement) method.getEnclosingElement())
                .anyMatch(owner -> !owner.getQualifiedName().contentEquals(FunctionProvider.class.getName()));
    }

    private List<FunctionDeclaration.Problem> problemsOfClass() {
        List<FunctionDeclaration.Problem> problems = new ArrayList<>();
        checkClass(problems);
        return problems;
    }

    private void checkClass(List<FunctionDeclaration.Problem> problems) {
        if (type.getKind() != ElementKind.CLASS && type.getKind() != ElementKind.RECORD) {
            problems.add(problem("on a type of kind " + type.getKind() + " (expected: a class)"));
            return;
        }
        if (type.getModifiers().contains(Modifier.ABSTRACT)) {
            problems.add(problem("on an abstract class (expected: a class that the server can create)"));
        }
        for (Element part = type; part instanceof TypeElement nested; part = part.getEnclosingElement()) {
            checkAccess(problems, nested);
        }
        if (ElementFilter.constructorsIn(type.getEnclosedElements()).stream()
                .noneMatch(made ->
                        made.getParameters().isEmpty() && made.getModifiers().contains(Modifier.PUBLIC))) {
            problems.add(problem("on a class without a public constructor without parameters (found: " + constructors()
                    + "; expected: public " + type.getSimpleName() + "())"));
        }
        if (!hasUnknownSupertype(type) && !isA(FunctionProvider.class)) {
            problems.add(problem("on a class that implements "
                    + (type.getInterfaces().isEmpty() ? "nothing" : type.getInterfaces())
                    + " (expected: TensorFunction,"
                    + " AsyncTensorFunction or StreamingFunction)"));
        }
    }

    private void checkAccess(List<FunctionDeclaration.Problem> problems, TypeElement part) {
        String name = part.equals(type) ? "the class" : "the enclosing " + part.getSimpleName();
        if (!part.getModifiers().contains(Modifier.PUBLIC)) {
            problems.add(
                    problem("on a class that the server cannot access: " + name + " is not public (expected: public)"));
        }
        if (part.getNestingKind().isNested() && !part.getModifiers().contains(Modifier.STATIC)) {
            problems.add(problem("on a class that the server cannot create: " + name
                    + " is an inner class (expected: a class of its own, or a static one)"));
        }
    }

    private String constructors() {
        return String.join(
                ", ",
                ElementFilter.constructorsIn(type.getEnclosedElements()).stream()
                        .map(made -> Stream.concat(
                                        made.getModifiers().stream().map(Modifier::toString),
                                        Stream.of(made.toString()))
                                .reduce((left, right) -> left + " " + right)
                                .orElse(""))
                        .toList());
    }

    private boolean isA(Class<?> function) {
        TypeElement known = elements.getTypeElement(function.getName());
        return known != null && types.isAssignable(types.erasure(type.asType()), types.erasure(known.asType()));
    }

    /** Returns whether a supertype cannot be found, which the compiler reports. */
    private boolean hasUnknownSupertype(TypeElement of) {
        return Stream.concat(Stream.of(of.getSuperclass()), of.getInterfaces().stream())
                .anyMatch(parent -> parent.getKind() == TypeKind.ERROR
                        || (parent instanceof DeclaredType declared
                                && declared.asElement() instanceof TypeElement element
                                && hasUnknownSupertype(element)));
    }

    private void checkOverrides(List<FunctionDeclaration.Problem> problems, FunctionDeclaration declaration) {
        if (overrides("name")) {
            problems.add(problem(
                    "name: \"" + declaration.name() + "\" beside the method name() (expected: the annotation alone)"));
        }
        if (declaration.completes() && overrides("completion")) {
            problems.add(
                    problem("declares tensors or batching beside the method completion() (expected: one of the two)"));
        }
    }

    private boolean overrides(String method) {
        for (TypeMirror at = type.asType(); at instanceof DeclaredType declared; ) {
            TypeElement element = (TypeElement) declared.asElement();
            for (ExecutableElement found : ElementFilter.methodsIn(element.getEnclosedElements())) {
                if (found.getSimpleName().contentEquals(method)
                        && found.getParameters().isEmpty()) {
                    return true;
                }
            }
            at = element.getSuperclass();
        }
        return false;
    }

    private static FunctionDeclaration.Problem problem(String message) {
        return new FunctionDeclaration.Problem(BackendFunction.class, 0, "annotation @BackendFunction: " + message);
    }
}
